"""What the service writes, as a client reads it: replies and events, typed.

The reading side of what `wire` writes, and more lenient than its schemas: a field, kind or code that is added
later does not stop an older client. Knows JSON; no Kafka.
"""

from datetime import UTC, datetime
from typing import Literal

import msgspec

Sign = Literal["+", "-"]


class Fault(msgspec.Struct, frozen=True):
    """Why a command was rejected; the codes are in docs/wire-format.md."""

    code: str
    message: str


class ReplyMessage(msgspec.Struct, frozen=True, kw_only=True):
    """The service's answer to one command.

    Attributes
    ----------
    status : accepted, unchanged, rejected or deleted.
    control_offset : where the command stands in the control topic.
    version : control offset + 1 of the command; None where it was rejected.
    feed_offsets : feed -> partition -> the next offset when the command took effect.
    error : only where `status` is rejected.
    """

    query_id: str
    status: str
    control_offset: int
    version: int | None = None
    batch: int | None = None
    feed_offsets: dict[str, dict[int, int]] = {}
    error: Fault | None = None


class Moment(msgspec.Struct, frozen=True):
    """A value of a stream and its event time (epoch ms)."""

    event_time: int
    value: dict[str, float]


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """One event.

    With `layout = "crossing"` one crossing: `query_id`, `query_version`, `sign` and `tags` are set. With
    `layout = "reading"` all crossings of one stream and cause: `entered` and `left` are query ids.

    Attributes
    ----------
    event_id : the same after a replay, so that a consumer can drop what it has seen.
    event_time : epoch ms of the reading.
    previous : where the stream came from; None unless it moved.
    """

    event_id: str
    kind: str
    feed: str
    stream_id: str
    reason: str
    event_time: int
    value: dict[str, float]
    query_id: str | None = None
    query_version: int | None = None
    sign: Sign | None = None
    previous: Moment | None = None
    tags: dict[str, str | float | bool] = {}
    entered: tuple[str, ...] = ()
    left: tuple[str, ...] = ()

    def crossings(self) -> list[tuple[Sign, str]]:
        """Return (sign, query id) of each crossing, whatever the layout."""
        if self.query_id is not None and self.sign is not None:
            return [(self.sign, self.query_id)]
        left: list[tuple[Sign, str]] = [("-", query_id) for query_id in self.left]
        return left + [("+", query_id) for query_id in self.entered]

    def sentences(self) -> list[str]:
        """Return a sentence for people for each crossing: who entered or left what, where, and why."""
        value = ", ".join(f"{dimension}={number:.10g}" for dimension, number in self.value.items())
        tags = "".join(f" [{name}: {text}]" for name, text in self.tags.items())
        rest = f"at {value} ({self.reason}){tags}"
        return [
            f"{self.stream_id} {'entered' if sign == '+' else 'left'} {query_id} {rest}"
            for sign, query_id in self.crossings()
        ]

    def lines(self) -> list[str]:
        """Return the sentences, each behind the event time in UTC."""
        moment = datetime.fromtimestamp(self.event_time / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
        return [f"{moment} {sentence}" for sentence in self.sentences()]


_reply_decoder = msgspec.json.Decoder(ReplyMessage)
_event_decoder = msgspec.json.Decoder(Event)


def read_reply(value: bytes) -> ReplyMessage | None:
    """Return the reply, or None for a record that is none (another program's, or a later version's)."""
    try:
        return _reply_decoder.decode(value)
    except msgspec.DecodeError:
        return None


def read_event(value: bytes) -> Event | None:
    """Return the event, or None for a record that is none of ours."""
    try:
        return _event_decoder.decode(value)
    except msgspec.DecodeError:
        return None
