"""Readings and crossings, as columns."""

from dataclasses import dataclass
from enum import IntEnum
from typing import Annotated

from bmq.records.arrays import NEVER, Absent, Bools, Bytes, Int8s, Int32s, Int64s, RowsOf, UInt64s, Values
from bmq.records.queries import RegionQuery


class Sign(IntEnum):
    """+ a stream entered a region, - it left; 0 in the events of transition queries."""

    LEFT = -1
    NONE = 0
    ENTERED = 1


class Reason(IntEnum):
    """Why a membership began or ended. The numbers are in frames, state and counters: never change one."""

    MOVED = 0
    FIRST_SEEN = 1
    QUERY_REGISTERED = 2
    QUERY_UPDATED = 3
    QUERY_DELETED = 4
    QUERY_EXPIRED = 5
    STREAM_EXPIRED = 6

    @property
    def text(self) -> str:
        """The reason as it stands in events and metrics."""
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class Ids:
    """Many stream ids as UTF-8 bytes in one buffer (Arrow's layout without the nulls).

    Attributes
    ----------
    starts : int64[n + 1], id i is bytes[starts[i]:starts[i + 1]].
    bytes : uint8[starts[n]] or longer.
    hashes : uint64[n], `kernels.tables.hashing.hash_ids` of each id.
    """

    starts: Int64s
    bytes: Bytes
    hashes: UInt64s

    def __len__(self) -> int:
        return self.starts.size - 1

    def text(self, i: int) -> str:
        """Return id ``i`` as text."""
        return self.bytes[self.starts[i] : self.starts[i + 1]].tobytes().decode()


@dataclass(frozen=True, slots=True)
class Attributes:
    """The attributes of many readings: for each a row of a table of texts.

    Attributes
    ----------
    codes : int32[n], rows of ``texts``.
    texts : what `wire.attributes` makes of the attributes of one reading; each at most once.
    """

    codes: Annotated[Int32s, RowsOf("texts")]
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Readings:
    """Readings of one feed and one shard, as columns, ascending by (partition, offset).

    The order and the types of the fields are in checkpoints, as those of the records in `records.state`.

    Attributes
    ----------
    event_times, record_times : int64[n], epoch milliseconds.
    values : float64[d, n], finite, one row a dimension, C-contiguous.
    attributes : None where the feed has none.
    partitions : int32[n]; None where the feed holds no readings back, since their order is then that of the rows.
    lags : int64[n], ms, 0 or more: how far the settled time of the feed was beyond each reading before its batch. None:
        no reading has a lag.
    """

    ids: Ids
    event_times: Int64s
    record_times: Int64s
    values: Values
    attributes: Attributes | None = None
    partitions: Int32s | None = None
    lags: Annotated[Int64s | None, Absent(0)] = None

    def __len__(self) -> int:
        return self.event_times.size


@dataclass(frozen=True, slots=True)
class Crossings:
    """Events of one feed, as columns, in output order: crossings, and what transition queries make of them.

    Attributes
    ----------
    ids : the streams, one an event (repeated ids are repeated).
    queries : the definitions that `query_rows` points into.
    query_rows : int32[n].
    signs, reasons : int8[n], `Sign` and `Reason`; those of a transition event are NONE and MOVED.
    kinds : int8[n], `Kind.number` of the event, which may differ from the kind of its query (see `Kind`).
    event_times : int64[n], epoch ms of the reading, or of the moment that docs/semantics.md names.
    ordinals : int32[n], how many readings of the stream at that event time came before the one meant.
    values : float64[d, n], the stream's value.
    previous_times : int64[n], valid where `has_previous`.
    previous_values : float64[d, n], valid where `has_previous`.
    has_previous : bool[n], true where a reading moved a known stream.
    record_times : int64[n], epoch ms of the record that caused it; -1 where no reading did.
    passes : int32[n], 0: no pass; k: of the k-th visit on the way. None: no pass in all rows.
    confirmed_times : int64[n], epoch ms; NEVER: not confirmed. None: none in all rows.
    began : int64[n], epoch ms at which a transition began; NEVER: not of that family. None: none in all rows.
    """

    feed: str
    ids: Ids
    queries: tuple[RegionQuery, ...]
    query_rows: Annotated[Int32s, RowsOf("queries")]
    signs: Int8s
    reasons: Int8s
    kinds: Int8s
    event_times: Int64s
    ordinals: Int32s
    values: Values
    previous_times: Int64s
    previous_values: Values
    has_previous: Bools
    record_times: Int64s
    passes: Annotated[Int32s | None, Absent(0)] = None
    confirmed_times: Annotated[Int64s | None, Absent(NEVER)] = None
    began: Annotated[Int64s | None, Absent(NEVER)] = None

    def __len__(self) -> int:
        return self.query_rows.size
