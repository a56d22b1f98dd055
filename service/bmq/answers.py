"""What the service writes, as a client reads it: replies and events, typed.

The reading side of what `wire` writes, and more lenient than its schemas: a field, kind or code that is added
later does not stop an older client. Knows JSON; no Kafka.
"""

from datetime import UTC, datetime
from typing import Literal

import msgspec

Sign = Literal["+", "-"]

# What a stream did of which a transition query reports.
_DEEDS = {
    "in_then_out": "entered and soon left",
    "out_then_in": "left and soon entered",
    "in_not_out": "stayed in",
    "out_not_in": "stayed out of",
}


class Fault(msgspec.Struct, frozen=True):
    """Why a command was rejected; the codes are in docs/wire-format.md."""

    code: str
    message: str


class ReplyMessage(msgspec.Struct, frozen=True, kw_only=True):
    """The service's answer to one command.

    Attributes
    ----------
    status : accepted, unchanged, rejected, deleted or expired.
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
    `layout = "reading"` all crossings of one stream and cause: `entered` and `left` are query ids. An event of a
    transition query has `query_id` and no `sign`.

    Attributes
    ----------
    event_id : the same after a replay, so that a consumer can drop what it has seen.
    event_time : epoch ms of the reading, or of the moment of an expiry.
    previous : where the stream came from; None unless it moved.
    confirmed_time : epoch ms at which `stay_for` or `away_for` had passed.
    is_pass : whether the stream was inside only on its way between two readings.
    pattern, began : of a transition: which one, and epoch ms of its first crossing.
    """

    event_id: str
    kind: str
    feed: str
    stream_id: str
    event_time: int
    value: dict[str, float]
    reason: str = ""
    query_id: str | None = None
    query_version: int | None = None
    sign: Sign | None = None
    previous: Moment | None = None
    tags: dict[str, str | float | bool] = {}
    entered: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    confirmed_time: int | None = None
    is_pass: bool = msgspec.field(default=False, name="pass")
    pattern: str | None = None
    began: int | None = None

    def crossings(self) -> list[tuple[Sign, str]]:
        """Return (sign, query id) of each crossing, whatever the layout; none of a transition."""
        if self.query_id is not None and self.sign is not None:
            return [(self.sign, self.query_id)]
        left: list[tuple[Sign, str]] = [("-", query_id) for query_id in self.left]
        return left + [("+", query_id) for query_id in self.entered]

    def is_about(self, query_id: str) -> bool:
        """Return whether the event is one of that query."""
        return query_id == self.query_id or query_id in self.entered or query_id in self.left

    def sentences(self) -> list[str]:
        """Return a sentence for people for each crossing: who entered or left what, where, and why."""
        value = ", ".join(f"{dimension}={number:.10g}" for dimension, number in self.value.items())
        tags = "".join(f" [{name}: {text}]" for name, text in self.tags.items())
        rest = f"at {value} ({self._why()}){tags}"
        if self.pattern is not None:
            return [f"{self.stream_id} {_DEEDS.get(self.pattern, self.pattern)} {self.query_id} {rest}"]
        return [
            f"{self.stream_id} {'entered' if sign == '+' else 'left'} {query_id} {rest}"
            for sign, query_id in self.crossings()
        ]

    def lines(self) -> list[str]:
        """Return the sentences, each behind the event time in UTC."""
        return [f"{_moment(self.event_time)} {sentence}" for sentence in self.sentences()]

    def _why(self) -> str:
        parts = [self.reason] if self.reason else []
        if self.is_pass:
            parts.append("on its way")
        if self.confirmed_time is not None:
            parts.append(f"confirmed {_moment(self.confirmed_time)}")
        if self.began is not None:
            parts.append(f"began {_moment(self.began)}")
        return ", ".join(parts)


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """A stream that is inside a query, as the membership topic says.

    Attributes
    ----------
    since, value : event time (epoch ms) and value with which it entered.
    """

    query_id: str
    query_version: int
    feed: str
    stream_id: str
    since: int
    value: dict[str, float]

    def line(self) -> str:
        """Return who is inside since when, and where it entered."""
        value = ", ".join(f"{dimension}={number:.10g}" for dimension, number in self.value.items())
        return f"{self.stream_id} since {_moment(self.since)}, entered at {value}"


def _moment(epoch_ms: int) -> str:
    return datetime.fromtimestamp(epoch_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]


_reply_decoder = msgspec.json.Decoder(ReplyMessage)
_event_decoder = msgspec.json.Decoder(Event)
_member_decoder = msgspec.json.Decoder(Member)


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


def read_member(value: bytes) -> Member | None:
    """Return the member, or None for a record that is none of ours."""
    try:
        return _member_decoder.decode(value)
    except msgspec.DecodeError:
        return None
