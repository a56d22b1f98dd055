"""Events as a table: a row for each crossing, pair or answer.

| column | of |
|---|---|
| `event_id`, `kind`, `query_id` | every event |
| `event_time` | every event: `datetime64[ms, UTC]` |
| `sign`, `reason` | border queries and band joins; the sign is `+` or `-` |
| `feed`, `stream_id`, `value.NAME` | queries over one feed: a column for each dimension |
| `left.feed`, `left.stream_id`, `left.value.NAME`, `right.…` | joins |
| `pass`, `confirmed_time`, `pattern`, `began` | events that have them |
| `tags.NAME` | queries with tags |

Under `layout = "reading"` one event has several rows, with the same `event_id`. A cell that an event does not have is
missing (None, NaN or NaT).
"""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pandas

from bmq.client.messages import Event, JoinEvent

FIRST = ("event_time", "kind", "sign", "query_id", "feed", "stream_id", "reason", "event_id")
TIMES = ("event_time", "confirmed_time", "began")

Row = dict[str, Any]


def frame_of(events: Iterable[Event | JoinEvent], query_id: str | None = None) -> pandas.DataFrame:
    """Return the frame of some events, in their order. O(events), a row at a time in Python.

    Parameters
    ----------
    query_id : only the rows of this query; an event may be about several.
    """
    rows = [row for event in events for row in (_of_stream(event) if isinstance(event, Event) else [_of_pair(event)])]
    if query_id is not None:
        rows = [row for row in rows if row["query_id"] == query_id]
    others = sorted({name for row in rows for name in row} - set(FIRST))
    frame = pandas.DataFrame.from_records(rows, columns=[*FIRST, *others])
    for name in TIMES:
        if name in frame:
            # Not by `to_datetime`, which counts nanoseconds and knows no year behind 2262.
            times = np.array(["NaT" if pandas.isna(time) else int(time) for time in frame[name]], "datetime64[ms]")
            frame[name] = pandas.Series(times, frame.index).dt.tz_localize("UTC")
    return frame


def _of_stream(event: Event) -> Iterator[Row]:
    row = _common(event) | {"feed": event.feed, "stream_id": event.stream_id, **_values("", event.value)}
    if event.is_pass:
        row["pass"] = True
    row |= {
        name: value for name in ("confirmed_time", "pattern", "began") if (value := getattr(event, name)) is not None
    }
    crossings: list[tuple[str | None, str | None]] = [*event.crossings()] or [(None, event.query_id)]
    for sign, query_id in crossings:
        yield row | {"sign": sign, "query_id": query_id}


def _of_pair(event: JoinEvent) -> Row:
    row = _common(event) | {"sign": event.sign, "query_id": event.query_id}
    for side, reading in (("left.", event.left), ("right.", event.right)):
        if reading is not None:
            row |= {f"{side}feed": reading.feed, f"{side}stream_id": reading.stream_id, **_values(side, reading.value)}
    return row


def _common(event: Event | JoinEvent) -> Row:
    return {
        "event_id": event.event_id,
        "event_time": event.event_time,
        "kind": event.kind,
        "reason": event.reason or None,
        **{f"tags.{name}": value for name, value in event.tags.items()},
    }


def _values(prefix: str, value: dict[str, float]) -> Row:
    return {f"{prefix}value.{dimension}": number for dimension, number in value.items()}
