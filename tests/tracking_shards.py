"""Trackings as a test sees them: items in, events out, queries and streams by number whatever their slots.

Here is no rule. Shards have slots of their own, so that a test can move trackings from one to another.
"""

from typing import Any, NamedTuple

import numpy as np

from bmq.engines.tracking import trackings as engine
from bmq.engines.tracking.trackings import TrackingEvents, TrackingItems, Trackings
from bmq.kernels.tables.hashing import hash_ids
from bmq.records import NEVER, Ids, Int32s, RegionQuery
from tests.strategies_tracking import Item

VISITS = {engine.NO: "no", engine.EMITTED: "emitted", engine.SILENT: "silent"}  # the names are those of the definition


class Event(NamedTuple):
    """One event of `bmq.engines.event_columns.Events`; None for NEVER."""

    query: int
    stream: int
    moment: int
    class_: int
    sign: int
    reason: int
    event_time: int
    ordinal: int
    confirmed_time: int | None
    began: int | None
    row: int
    pass_: int
    value: float


def as_items(items: list[Item]) -> TrackingItems:
    dtypes = ("i4", "i4", "i8", "i1", "i1", "i1", "i8", "i4", "i4", "i4")
    columns: list[Any] = [np.array([item[k] for item in items], dtype=dtype) for k, dtype in enumerate(dtypes)]
    columns.append(np.array([[item.value for item in items]]))
    return TrackingItems(*columns)


def as_events(emitted: TrackingEvents) -> list[Event]:
    names = ["queries", "streams", "moments", "whens", "signs", "reasons", "event_times", "ordinals"]
    names += ["confirmed_times", "began", "rows", "passes"]
    columns = [*(getattr(emitted.events, name) for name in names), emitted.events.values[0]]
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return [Event._make(None if fact == NEVER else fact for fact in row) for row in rows]


def ids_of(streams: Int32s) -> Ids:
    encoded = [f"s{stream}".encode() for stream in streams.tolist()]
    starts = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    data = np.frombuffer(b"".join(encoded), dtype=np.uint8)
    return Ids(starts, data, hash_ids(starts, data))


class Shard:
    """Trackings with slots of its own: another shard has others for the same queries and streams."""

    def __init__(self, shift: int) -> None:
        self.shift = shift
        self.trackings = Trackings(1)

    def query_slot(self, query_id: str) -> int:
        return int(query_id[1:]) * 40 + self.shift

    def query_id(self, slot: int) -> str:
        return f"q{(slot - self.shift) // 40}"

    def stream_slots(self, ids: Ids) -> Int32s:
        return np.array([int(ids.text(i)[1:]) * 7 + self.shift for i in range(len(ids))], dtype=np.int32)

    def slotted(self, items: list[Item]) -> TrackingItems:
        return as_items([i._replace(query=i.query * 40 + self.shift, stream=i.stream * 7 + self.shift) for i in items])

    def named(self, emitted: TrackingEvents) -> list[Event]:
        return [
            event._replace(query=(event.query - self.shift) // 40, stream=(event.stream - self.shift) // 7)
            for event in as_events(emitted)
        ]

    def visits(self, query: int) -> set[tuple[int, str, bool]]:
        """Return (stream, visit, whether it is inside) of each tracking of a border query that has any of these."""
        columns = self.trackings.rows_of(self.query_slot(f"q{query}"))
        rows = zip(*(column.tolist() for column in columns), strict=True)
        found = {((slot - self.shift) // 7, VISITS[code], is_inside) for slot, code, is_inside in rows}
        return {fact for fact in found if fact[1:] != ("no", False)}

    def ids(self, slots: Int32s) -> Ids:
        return ids_of((slots - self.shift) // 7)

    def rows(self) -> set[tuple[object, ...]]:
        """All that a replica must know."""
        return {
            (
                page.query_ids[page.query_rows[i]],
                page.ids.text(i),
                flags := int(page.flags[i]),
                # If nothing is pending, the facts of the last crossing mean nothing.
                *((page.reasons[i], page.ordinals[i], page.begins[i], page.values[0, i]) if flags & 24 else ()),
                page.last_entered[i],
                page.n_events[i],
            )
            for page in self.trackings.snapshot(self.query_id, self.ids, 2)
            for i in range(len(page.ids))
        }

    def copy(self, shift: int, queries: dict[int, RegionQuery]) -> "Shard":
        other = Shard(shift)
        for query, options in queries.items():
            other.trackings.set_options(other.query_slot(f"q{query}"), options)
        for page in self.trackings.snapshot(self.query_id, self.ids, 2):
            other.trackings.put_rows(page, other.query_slot, other.stream_slots)
        return other
