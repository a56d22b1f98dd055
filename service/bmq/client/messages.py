"""The replies, events and members that the service writes, as typed records for clients.

The counterpart of the renderers in `wire`, and more lenient than its schemas: a field, kind or code that a later
version adds does not break an older client. Knows JSON, but not Kafka.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Literal

import msgspec

Sign = Literal["+", "-"]

# Verbs for the sentences about events of transition, match and select queries.
_DEEDS = {
    "in_then_out": "entered and soon left",
    "out_then_in": "left and soon entered",
    "in_not_out": "stayed in",
    "out_not_in": "stayed out of",
    "match": "is inside",
    "select": "satisfies",
}
_DEEDS_OF_PAIRS = {"+": "came into", "-": "left", None: "satisfy"}


class Fault(msgspec.Struct, frozen=True):
    """The reason why a command was rejected, or why events go to another topic; docs/wire-format.md lists the codes."""

    code: str
    message: str


class ReplyMessage(msgspec.Struct, frozen=True, kw_only=True):
    """The service's reply to one command.

    Attributes
    ----------
    status : accepted, unchanged, rejected, deleted, expired or degraded.
    control_offset : the offset of the command in the control topic.
    version : control offset + 1 of the command; None if it was rejected.
    feed_offsets : feed -> partition -> the next offset when the command took effect.
    error : set only if `status` is rejected or degraded.
    """

    query_id: str
    status: str
    control_offset: int
    version: int | None = None
    batch: int | None = None
    feed_offsets: dict[str, dict[int, int]] = {}
    error: Fault | None = None


def last_reply(before: ReplyMessage | None, reply: ReplyMessage | None) -> ReplyMessage | None:
    """Return the reply that holds after this one; ``before`` is the one that held until now.

    `degraded` and `expired` name the version in force, and a later put may be answered already. If that put changed
    nothing, its definition has expired, too.
    """
    if before is None or reply is None or reply.control_offset >= before.control_offset:
        return reply
    if reply.status == "expired" and before.status == "unchanged":
        return msgspec.structs.replace(reply, control_offset=before.control_offset, version=before.version)
    return before if reply.status in ("degraded", "expired") else reply


class Moment(msgspec.Struct, frozen=True):
    """A value of a stream and its event time (epoch ms)."""

    event_time: int
    value: dict[str, float]


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """One event about a stream.

    With `layout = "crossing"` an event is one crossing: `query_id`, `query_version`, `sign` and `tags` are set. With
    `layout = "reading"` it is all crossings of one stream and cause: `entered` and `left` are query ids. An event of a
    transition, match or select query has `query_id` and no `sign`.

    Attributes
    ----------
    event_id : the same after a replay, so that a consumer can drop repeats.
    event_time : epoch ms of the reading, or of the moment of an expiry.
    reason : empty for events of transition, match and select queries.
    previous : the reading before the move; None unless the stream moved.
    confirmed_time : epoch ms at which `stay_for` or `away_for` had passed.
    is_pass : whether the stream was inside only between two readings.
    pattern, began : of a transition: the pattern, and epoch ms of the first crossing.
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

    @property
    def subject(self) -> str:
        """The stream of the event, in words."""
        return f"stream {self.stream_id}"

    def crossings(self) -> list[tuple[Sign, str]]:
        """Return (sign, query id) of each crossing, under both layouts; empty if the event is not about crossings."""
        if self.query_id is not None and self.sign is not None:
            return [(self.sign, self.query_id)]
        left: list[tuple[Sign, str]] = [("-", query_id) for query_id in self.left]
        return left + [("+", query_id) for query_id in self.entered]

    def is_about(self, query_id: str) -> bool:
        """Return whether the event belongs to that query."""
        return query_id == self.query_id or query_id in self.entered or query_id in self.left

    def is_of(self, stream_id: str) -> bool:
        """Return whether the event belongs to that stream."""
        return stream_id == self.stream_id

    def sentences(self) -> list[str]:
        """Return a readable sentence for each crossing: the stream, the query, the value, and the reason."""
        rest = f"at {_value_text(self.value)}{_in_brackets(self._why())}{_tags_text(self.tags)}"
        if self.query_id is not None and self.sign is None:
            deed = self.pattern or self.kind
            return [f"{self.stream_id} {_DEEDS.get(deed, deed)} {self.query_id} {rest}"]
        return [
            f"{self.stream_id} {'entered' if sign == '+' else 'left'} {query_id} {rest}"
            for sign, query_id in self.crossings()
        ]

    def lines(self) -> list[str]:
        """Return the sentences, each after the event time in UTC."""
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


class JoinedReading(msgspec.Struct, frozen=True):
    """The reading of one side of a join."""

    feed: str
    stream_id: str
    event_time: int
    value: dict[str, float]


class JoinEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One event of a join.

    Attributes
    ----------
    event_id : as for `Event`.
    event_time : epoch ms of the later reading, or of the moment of an expiry.
    left, right : the joined pair. If a band join reports queries, only the reading that changed the answer.
    sign, reason : of a band join; one that reports queries has a reason and no sign.
    """

    event_id: str
    kind: str
    query_id: str
    query_version: int
    event_time: int
    left: JoinedReading | None = None
    right: JoinedReading | None = None
    sign: Sign | None = None
    reason: str = ""
    tags: dict[str, str | float | bool] = {}

    @property
    def readings(self) -> list[JoinedReading]:
        """The readings of the event, the left one first."""
        return [reading for reading in (self.left, self.right) if reading is not None]

    @property
    def subject(self) -> str:
        """The streams of the event, in words."""
        return f"streams {self._streams()}"

    def is_about(self, query_id: str) -> bool:
        """Return whether the event belongs to that query."""
        return query_id == self.query_id

    def is_of(self, stream_id: str) -> bool:
        """Return whether the event belongs to that stream, on either side."""
        return any(reading.stream_id == stream_id for reading in self.readings)

    def sentences(self) -> list[str]:
        """Return a readable sentence: the streams, the query, the values, and the reason."""
        deed = "changed the answer of" if len(self.readings) == 1 else _DEEDS_OF_PAIRS[self.sign]
        values = " ~ ".join(_value_text(reading.value) for reading in self.readings)
        rest = f"at {values}{_in_brackets(self.reason)}{_tags_text(self.tags)}"
        return [f"{self._streams()} {deed} {self.query_id} {rest}"]

    def lines(self) -> list[str]:
        """Return the sentence after the event time in UTC."""
        return [f"{_moment(self.event_time)} {sentence}" for sentence in self.sentences()]

    def _streams(self) -> str:
        return " ~ ".join(reading.stream_id for reading in self.readings)


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """A stream that is inside a query, from the membership topic.

    Attributes
    ----------
    since, value : event time (epoch ms) and value of the stream when it entered.
    """

    query_id: str
    query_version: int
    feed: str
    stream_id: str
    since: int
    value: dict[str, float]

    def line(self) -> str:
        """Return a readable line: the stream, the time since when it is inside, and the value at that time."""
        return f"{self.stream_id} since {_moment(self.since)}, entered at {_value_text(self.value)}"


class _CloudEvent(msgspec.Struct, frozen=True):
    """An event with the envelope of CloudEvents, in the structured mode."""

    specversion: str
    data: msgspec.Raw


def _value_text(value: Mapping[str, float]) -> str:
    return ", ".join(f"{dimension}={number:.10g}" for dimension, number in value.items())


def _tags_text(tags: Mapping[str, str | float | bool]) -> str:
    return "".join(f" [{name}: {text}]" for name, text in tags.items())


def _in_brackets(why: str) -> str:
    return f" ({why})" if why else ""


def _moment(epoch_ms: int) -> str:
    return datetime.fromtimestamp(epoch_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]


_reply_decoder = msgspec.json.Decoder(ReplyMessage)
_cloud_event_decoder = msgspec.json.Decoder(_CloudEvent)
_event_decoder = msgspec.json.Decoder(Event)
_join_event_decoder = msgspec.json.Decoder(JoinEvent)
_member_decoder = msgspec.json.Decoder(Member)
_UNREADABLE = (msgspec.DecodeError, ValueError, RecursionError)  # another structure, no UTF-8, nested too deeply


def read_reply(value: bytes) -> ReplyMessage | None:
    """Return the reply, or None if the record is not a reply that this version can read."""
    try:
        return _reply_decoder.decode(value)
    except _UNREADABLE:
        return None


def read_event(value: bytes) -> Event | JoinEvent | None:
    """Return the event, with or without the envelope of CloudEvents; None: the record is not an event."""
    event = _read_bare_event(value)
    if event is not None:
        return event
    try:
        return _read_bare_event(_cloud_event_decoder.decode(value).data)
    except _UNREADABLE:
        return None


def _read_bare_event(value: bytes | msgspec.Raw) -> Event | JoinEvent | None:
    try:
        return _event_decoder.decode(value)
    except _UNREADABLE:
        pass
    try:
        event = _join_event_decoder.decode(value)
    except _UNREADABLE:
        return None
    return event if event.readings else None


def read_member(value: bytes) -> Member | None:
    """Return the member, or None if the record is not a member; a null value is not."""
    try:
        return _member_decoder.decode(value)
    except _UNREADABLE:
        return None
