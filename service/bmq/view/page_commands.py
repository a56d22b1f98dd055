"""Commands from the page: checked as the service checks them, then published, and answered with the service's reply.

A definition that the service would reject is not published, because in the compacted control topic it would replace the
definition in force. The answer has the code and the message that the service would reply.
"""

import threading
from dataclasses import asdict, dataclass
from typing import Any

import msgspec

from bmq.client import Client
from bmq.client.messages import ReplyMessage
from bmq.errors import ControlError, ServiceError
from bmq.records import Installation
from bmq.wire.control import validate_definition

MOST_BYTES = 1_000_000  # of a definition; Kafka takes no longer record by default
REPLY_SECONDS = 45.0


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a command: an HTTP status, and what the page gets."""

    status: int
    body: dict[str, Any]


class PageCommands:
    """Publishes commands. Every method may be called from any thread, and blocks until the reply.

    Parameters
    ----------
    installation : what the rules for definitions depend on.
    """

    def __init__(self, client: Client, installation: Installation) -> None:
        self._client = client
        self._installation = installation
        self._places = threading.BoundedSemaphore(8)  # a reply takes a batch; more at once would only queue in threads

    def put(self, query_id: str, definition: bytes) -> Answer:
        """Register or replace a query."""
        try:
            validate_definition(query_id, definition, self._installation)
        except ControlError as error:
            return _refused(error.code.value, str(error))
        return self._publish(query_id, definition)

    def delete(self, query_id: str) -> Answer:
        """Delete a query."""
        return self._publish(query_id, None)

    def _publish(self, query_id: str, definition: bytes | None) -> Answer:
        if not self._places.acquire(blocking=False):
            return Answer(503, {"error": {"code": "busy", "message": "Eight commands are under way. Try again soon."}})
        try:
            reply = self._client.put_many({query_id: definition}, REPLY_SECONDS)[query_id]
        except ServiceError as error:
            return Answer(504, {"error": {"code": "no_reply", "message": str(error)}})
        finally:
            self._places.release()
        return _replied(reply)


def _replied(reply: ReplyMessage) -> Answer:
    if reply.status == "rejected" and reply.error is not None:
        return _refused(reply.error.code, reply.error.message)
    return Answer(200, msgspec.to_builtins(reply))


def _refused(code: str, message: str) -> Answer:
    return Answer(422, {"error": asdict(_Fault(code, message))})


@dataclass(frozen=True, slots=True)
class _Fault:
    code: str
    message: str
