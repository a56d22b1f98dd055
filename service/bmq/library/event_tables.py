"""Events of the engine as Arrow tables: a row for each event, and the same columns in each table of a monitor.

The columns mean what the fields of the service's event messages mean (docs/library.md lists them). An event id is the
id that the service gives the same event. Knows columns; the monitor decides which events there are.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from bmq.monitor.crossing_batches import cut_crossings, cut_pairs
from bmq.records import (
    NEVER,
    Bools,
    Crossings,
    Family,
    Feed,
    Int8s,
    Int64s,
    JoinedPairs,
    Kind,
    PairSide,
    Query,
    Reason,
    Sign,
    Values,
    are_of_family,
)
from bmq.wire.event_messages import crossing_ids
from bmq.wire.event_pieces import used_queries
from bmq.wire.join_event_messages import pair_ids
from bmq.wire.outgoing import text_column

# Rows of a piece of a table. A piece of short texts has some 100 MB; Arrow's text columns hold at most 2 GiB.
PIECE_ROWS = 500_000

_TIME = pa.timestamp("ms", "UTC")
_KINDS = pa.array([kind.value for kind in Kind])
_REASONS = pa.array([reason.text for reason in Reason])
_SIGNS = pa.array(["-", None, "+"])
_FIRST = [("event_time", _TIME), ("kind", pa.string()), ("sign", pa.string()), ("query_id", pa.string())]
_LAST = [
    ("reason", pa.string()),
    ("pass", pa.bool_()),
    ("confirmed_time", _TIME),
    ("pattern", pa.string()),
    ("began", _TIME),
    ("query_version", pa.int64()),
    ("tags", pa.string()),
    ("output_topic", pa.string()),
    ("event_id", pa.string()),
]
SIDES = ("left", "right")


class EventTables:
    """Makes the tables of one monitor.

    Parameters
    ----------
    feeds : all feeds of the monitor; they decide which columns there are.
    """

    def __init__(self, feeds: Mapping[str, Feed]) -> None:
        self._feeds = feeds
        dimensions = _dimensions(feeds.values())
        fields = [*_FIRST, ("feed", pa.string()), ("stream_id", pa.string())]
        fields += [(f"value.{name}", pa.float64()) for name in dimensions]
        fields += [("previous.event_time", _TIME)]
        fields += [(f"previous.value.{name}", pa.float64()) for name in dimensions]
        joining = [feed for feed in feeds.values() if feed.join]
        for side in SIDES if joining else ():
            fields += [(f"{side}.feed", pa.string()), (f"{side}.stream_id", pa.string()), (f"{side}.event_time", _TIME)]
            fields += [(f"{side}.value.{name}", pa.float64()) for name in _dimensions(joining)]
        self.schema = pa.schema([*fields, *_LAST])

    def table(self, events: Sequence[Crossings | JoinedPairs]) -> pa.Table:
        """Return events, in their order, as one table."""
        batches: list[pa.RecordBatch] = []
        for some in events:
            if isinstance(some, Crossings):
                batches += [self._of_crossings(piece) for piece in cut_crossings(some, PIECE_ROWS)]
            else:
                batches += [self._of_pairs(piece) for piece in cut_pairs(some, PIECE_ROWS)]
        return pa.Table.from_batches(batches, self.schema)

    def _of_crossings(self, crossings: Crossings) -> pa.RecordBatch:
        feed = self._feeds[crossings.feed]
        queries, query_rows = used_queries(crossings.queries, crossings.query_rows)
        levels = are_of_family(crossings.kinds, Family.LEVEL)
        has_previous = crossings.has_previous & ~levels
        is_crossing = are_of_family(crossings.kinds, Family.CROSSING)
        columns = {
            "event_time": _times(crossings.event_times),
            "kind": _KINDS.take(pa.array(crossings.kinds)),
            "sign": _signs(np.where(is_crossing, crossings.signs, 0)),
            "feed": pa.repeat(crossings.feed, len(crossings)),
            "stream_id": text_column(crossings.ids.starts, crossings.ids.bytes),
            **_values("value", feed, crossings.values),
            "previous.event_time": _times(np.where(has_previous, crossings.previous_times, NEVER)),
            **_values("previous.value", feed, crossings.previous_values, ~has_previous),
            "reason": _REASONS.take(pa.array(crossings.reasons, mask=~is_crossing)),
            "pass": pa.array(crossings.passes > 0 if crossings.passes is not None else np.zeros(len(levels), np.bool_)),
            "event_id": crossing_ids(crossings, feed, queries, query_rows),
            **_of_queries(queries, pa.array(query_rows)),
        }
        if crossings.confirmed_times is not None:
            columns["confirmed_time"] = _times(crossings.confirmed_times)
        if crossings.began is not None:
            patterns = pa.array([query.pattern and query.pattern.text for query in queries], pa.string())
            is_transition = are_of_family(crossings.kinds, Family.TRANSITION)
            columns["pattern"] = patterns.take(pa.array(query_rows, mask=~is_transition))
            columns["began"] = _times(np.where(is_transition, crossings.began, NEVER))
        return self._batch(columns, len(crossings))

    def _of_pairs(self, pairs: JoinedPairs) -> pa.RecordBatch:
        queries, query_rows = used_queries(pairs.queries, pairs.query_rows)
        are_windows = np.array([query.kind is Kind.WINDOW_JOIN for query in queries], dtype=np.bool_)[query_rows]
        columns = {
            "event_time": _times(pairs.event_times),
            "kind": _KINDS.take(pa.array(pairs.kinds)),
            "sign": _signs(np.where(are_windows, 0, pairs.signs)),
            **self._of_side("left", pairs.left),
            **self._of_side("right", pairs.right),
            "reason": _REASONS.take(pa.array(pairs.reasons, mask=are_windows)),
            "event_id": pair_ids(pairs, queries, query_rows),
            **_of_queries(queries, pa.array(query_rows)),
        }
        return self._batch(columns, len(pairs))

    def _of_side(self, name: str, side: PairSide) -> dict[str, pa.Array]:
        is_absent = side.event_times == NEVER
        present = pa.array(np.arange(len(is_absent)), mask=is_absent)
        return {
            f"{name}.feed": pa.repeat(side.feed, len(is_absent)).take(present),
            f"{name}.stream_id": text_column(side.ids.starts, side.ids.bytes).take(present),
            f"{name}.event_time": _times(side.event_times),
            **_values(f"{name}.value", self._feeds[side.feed], side.values, is_absent),
        }

    def _batch(self, columns: dict[str, pa.Array], n: int) -> pa.RecordBatch:
        filled = [columns[field.name] if field.name in columns else pa.nulls(n, field.type) for field in self.schema]
        return pa.RecordBatch.from_arrays(filled, schema=self.schema)


def _dimensions(feeds: Iterable[Feed]) -> list[str]:
    return list(dict.fromkeys(name for feed in feeds for name in feed.dimensions))


def _times(times: Int64s) -> pa.Array:
    return pa.array(times, mask=times == NEVER).cast(_TIME)


def _signs(signs: Int8s) -> pa.Array:
    return _SIGNS.take(pa.array(signs.astype(np.int8) - np.int8(Sign.LEFT)))


def _values(prefix: str, feed: Feed, values: Values, mask: Bools | None = None) -> dict[str, pa.Array]:
    return {f"{prefix}.{name}": pa.array(values[k], mask=mask) for k, name in enumerate(feed.dimensions)}


def _of_queries(queries: Sequence[Query], rows: pa.Array) -> dict[str, Any]:
    return {
        "query_id": pa.array([query.query_id for query in queries], pa.string()).take(rows),
        "query_version": pa.array([query.version for query in queries], pa.int64()).take(rows),
        "tags": pa.array([query.tags for query in queries], pa.string()).take(rows),
        "output_topic": pa.array([query.output_topic for query in queries], pa.string()).take(rows),
    }
