"""The client library for users: `from bmq.client import Client`."""

from bmq.client.async_client import AsyncClient
from bmq.client.client import REPLY_TIMEOUT_SECONDS, Client, Definition, StandingQuery
from bmq.client.ledger import Ledger, Report
from bmq.client.messages import Event, Fault, JoinEvent, Member, Moment, ReplyMessage

__all__ = [
    "REPLY_TIMEOUT_SECONDS",
    "AsyncClient",
    "Client",
    "Definition",
    "Event",
    "Fault",
    "JoinEvent",
    "Ledger",
    "Member",
    "Moment",
    "ReplyMessage",
    "Report",
    "StandingQuery",
]
