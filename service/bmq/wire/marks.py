"""Marks on the clock topic: how far the event time of a feed has come, said by no reading.

    {"feed": "vehicles", "event_time": 1700000000000}     the feed's clock is at least there
    {"feed": "vehicles"}                                  moves nothing, but makes a batch run

Knows JSON; who writes marks and when is `job.idle`'s business.
"""

from typing import Annotated

import msgspec

from bmq.wire.readings_exact import FIRST_EVENT_TIME_MS, LAST_EVENT_TIME_MS

# A clock is where a reading could have put it.
_Time = Annotated[int, msgspec.Meta(ge=FIRST_EVENT_TIME_MS, le=LAST_EVENT_TIME_MS)]


class _Mark(msgspec.Struct, frozen=True, omit_defaults=True):
    feed: str
    event_time: _Time | None = None


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(_Mark)


def render_mark(feed: str, event_time: int | None) -> bytes:
    """Return the record value of a mark; ``event_time`` in epoch ms, None: it moves nothing."""
    return _encoder.encode(_Mark(feed, event_time))


def parse_mark(value: bytes | None) -> tuple[str, int | None] | None:
    """Return (feed, event time) of a mark's record value, or None for a record that is none.

    Nobody but the service writes marks, and one mark less only delays a clock: so what is none is passed over.
    """
    try:
        mark = _decoder.decode(value or b"")
    except msgspec.DecodeError:
        return None
    return mark.feed, mark.event_time
