"""The client library for users: `from bmq.client import Client`."""

from bmq.client.client import Client, Definition, StandingQuery
from bmq.client.ledger import Ledger, Report
from bmq.client.messages import Event, JoinEvent, Member, ReplyMessage

__all__ = [
    "Client",
    "Definition",
    "Event",
    "JoinEvent",
    "Ledger",
    "Member",
    "ReplyMessage",
    "Report",
    "StandingQuery",
]
