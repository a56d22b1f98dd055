"""Crossings from plain rows, and messages back to plain objects, for the tests of the events topic."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from bmq.kernels.tables.hashing import hash_ids
from bmq.records import NEVER, Crossings, Feed, Ids, Kind, Reason, Region, RegionQuery, Sign

FEED = Feed("vehicles", "vehicles", "id", ("x", "y"), "ts")
Value = tuple[float, float]


def query(query_id: str = "q1", version: int = 18, **options: Any) -> RegionQuery:
    """Return a query over `vehicles` whose region does not matter here."""
    return RegionQuery(query_id, version, "vehicles", Region((0.0, 0.0), (10.0, 10.0)), **options)


QUERY = query()


@dataclass(frozen=True)
class Row:
    """One crossing."""

    stream: str = "v7"
    query: RegionQuery = QUERY
    sign: Sign = Sign.ENTERED
    reason: Reason = Reason.MOVED
    event_time: int = 1_700_000_000_000
    ordinal: int = 0
    value: Value = (5.0, 5.0)
    previous: tuple[int, Value] | None = None
    visit: int = 0
    confirmed_time: int = NEVER
    began: int = NEVER
    kind: Kind | None = None  # None: a transition if it began, a crossing if it has a sign, else of its query's kind

    @property
    def own_kind(self) -> Kind:
        """The kind of the event."""
        if self.kind is not None:
            return self.kind
        if self.began != NEVER:
            return Kind.TRANSITION
        return self.query.kind if self.sign is Sign.NONE else Kind.BORDER


def make_ids(streams: Iterable[str]) -> Ids:
    """Return the stream ids as one buffer."""
    encoded = [stream.encode() for stream in streams]
    starts = np.concatenate(([0], np.cumsum([len(text) for text in encoded], dtype=np.int64)))
    joined = np.frombuffer(b"".join(encoded), dtype=np.uint8)
    return Ids(starts, joined, hash_ids(starts, joined))


def make_crossings(rows: Sequence[Row]) -> Crossings:
    """Return the rows as columns."""
    queries = tuple(dict.fromkeys(row.query for row in rows))
    # What stands where there is no previous reading must not matter.
    previous = [row.previous or (-1, (np.nan, np.nan)) for row in rows]
    return Crossings(
        feed="vehicles",
        ids=make_ids(row.stream for row in rows),
        queries=queries,
        query_rows=np.array([queries.index(row.query) for row in rows], dtype=np.int32),
        signs=np.array([row.sign for row in rows], dtype=np.int8),
        reasons=np.array([row.reason for row in rows], dtype=np.int8),
        kinds=np.array([row.own_kind.number for row in rows], dtype=np.int8),
        event_times=np.array([row.event_time for row in rows], dtype=np.int64),
        ordinals=np.array([row.ordinal for row in rows], dtype=np.int32),
        values=_columns([row.value for row in rows]),
        previous_times=np.array([time for time, _ in previous], dtype=np.int64),
        previous_values=_columns([value for _, value in previous]),
        has_previous=np.array([row.previous is not None for row in rows], dtype=np.bool_),
        record_times=np.full(len(rows), -1, dtype=np.int64),
        passes=_unless_all([row.visit for row in rows], 0, np.int32),
        confirmed_times=_unless_all([row.confirmed_time for row in rows], NEVER, np.int64),
        began=_unless_all([row.began for row in rows], NEVER, np.int64),
    )


def read_values(messages: pa.RecordBatch) -> list[dict[str, Any]]:
    """Return the JSON objects of the messages."""
    return [json.loads(value) for value in messages.column("value").to_pylist()]


def read_headers(messages: pa.RecordBatch) -> list[dict[str, bytes]]:
    """Return the headers of each message, in their order."""
    return [{h["key"]: h["value"] for h in headers} for headers in messages.column("headers").to_pylist()]


def _unless_all(column: Sequence[int], missing: int, dtype: type[np.generic]) -> Any:
    return None if all(number == missing for number in column) else np.array(column, dtype=dtype)


def _columns(values: Sequence[Value]) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.ascontiguousarray(np.array(values, dtype=np.float64).reshape(-1, len(FEED.dimensions)).T)
