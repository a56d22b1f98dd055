"""Marks on the clock topic: they advance the event time of a feed that has no new readings.

    {"feed": "vehicles", "event_time": 1700000000000}     the feed's clock is at least there
    {"feed": "vehicles"}                                  advances no clock, but makes a batch run

Knows JSON; `job.idle` decides when marks are written.
"""

from typing import Annotated

import msgspec

from bmq.wire.event_times import FIRST_EVENT_TIME_MS, LAST_EVENT_TIME_MS

# The same range as for readings, so that a mark puts a clock only where a reading could.
_Time = Annotated[int, msgspec.Meta(ge=FIRST_EVENT_TIME_MS, le=LAST_EVENT_TIME_MS)]


class _Mark(msgspec.Struct, frozen=True, omit_defaults=True):
    feed: str
    event_time: _Time | None = None


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(_Mark)
_NO_MARK = (msgspec.DecodeError, ValueError, RecursionError)  # another structure, no UTF-8, nested too deeply


def render_mark(feed: str, event_time: int | None) -> bytes:
    """Return the record value of a mark; ``event_time`` in epoch ms, or None for a mark that advances no clock."""
    return _encoder.encode(_Mark(feed, event_time))


def parse_mark(value: bytes | None) -> tuple[str, int | None] | None:
    """Return (feed, event time) of a mark's record value, or None if the record is not a mark.

    Only the service writes marks, and a lost mark only delays a clock. So the caller skips records that are not marks.
    """
    try:
        mark = _decoder.decode(value or b"")
    except _NO_MARK:
        return None
    return mark.feed, mark.event_time
