"""The records that travel between layers: frozen, and known to every layer.

Knows numpy and nothing of ours. No JSON, no Arrow, no Spark, no Kafka: `wire` turns bytes into these,
`monitor` turns these into these, `wire` turns them back into bytes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum, StrEnum

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Int8s = npt.NDArray[np.int8]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
UInt64s = npt.NDArray[np.uint64]
Float64s = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


class Format(StrEnum):
    """How a feed's record values are written."""

    JSON = "json"
    CSV = "csv"


class IndexKind(StrEnum):
    """Which border structure finds the crossings of a feed; docs/indexes.md says what each is good for."""

    AUTO = "auto"  # whatever the cost model finds cheapest, from time to time anew
    REGION_SEGMENTS = "region_segments"
    BORDER_GRID = "border_grid"
    ND_BMQ = "nd_bmq"
    STAB_DIFFERENCE = "stab_difference"
    SCAN = "scan"

    def fits(self, n_dims: int) -> bool:
        """Return whether there is such a structure for values of ``n_dims`` dimensions."""
        if self is IndexKind.REGION_SEGMENTS:
            return n_dims == 1
        return n_dims > 1 or self not in (IndexKind.BORDER_GRID, IndexKind.ND_BMQ)


class Initial(StrEnum):
    """What a new or edited query says about streams that are already inside."""

    EMIT = "emit"
    SILENT = "silent"


class Sign(IntEnum):
    """+ a stream entered a region, - it left."""

    LEFT = -1
    ENTERED = 1


class Reason(IntEnum):
    """Why a membership began or ended. The numbers are in frames and counters: never change one."""

    MOVED = 0
    FIRST_SEEN = 1
    QUERY_REGISTERED = 2
    QUERY_UPDATED = 3
    QUERY_DELETED = 4

    @property
    def text(self) -> str:
        """The reason as it stands in events and metrics."""
        return self.name.lower()


class Status(StrEnum):
    """What a reply says of a command."""

    ACCEPTED = "accepted"
    UNCHANGED = "unchanged"
    REJECTED = "rejected"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True)
class Feed:
    """One input topic with its declared dimensions.

    Attributes
    ----------
    stream_id : the field that names the stream, or "@key" for the record key.
    event_time : the field that holds the event time; None: the record's own timestamp.
    dimensions : the numeric fields, in the order of every array's first axis.
    index : how crossings are found; no answer depends on it, and no checkpoint.
    """

    name: str
    topic: str
    stream_id: str
    dimensions: tuple[str, ...]
    event_time: str | None = None
    format: Format = Format.JSON
    attributes: tuple[str, ...] = ()
    index: IndexKind = IndexKind.AUTO


@dataclass(frozen=True, slots=True)
class BorderQuery:
    """One standing query of kind `border`, with its region made half-open.

    Attributes
    ----------
    version : control offset + 1 of the definition in force.
    lo, hi : one number a dimension of the feed; the region is [lo, hi); -inf and inf are "unbounded".
        Other bounds were turned into half-open ones with nextafter at the edge of the system.
    streams : the only streams watched, sorted and unique; None: all.
    tags : canonical JSON object text, copied into every event.
    """

    query_id: str
    version: int
    feed: str
    lo: tuple[float, ...]
    hi: tuple[float, ...]
    streams: tuple[str, ...] | None = None
    initial: Initial = Initial.EMIT
    output_topic: str | None = None
    tags: str = "{}"


@dataclass(frozen=True, slots=True)
class Put:
    """A command that registers or replaces a query; `query.version` is `offset + 1`."""

    offset: int
    query: BorderQuery


@dataclass(frozen=True, slots=True)
class Delete:
    """A command that removes a query."""

    offset: int
    query_id: str


@dataclass(frozen=True, slots=True)
class Refused:
    """A command that `wire` could not accept. It changes nothing; it is answered."""

    offset: int
    query_id: str
    code: str
    message: str


Command = Put | Delete | Refused


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to one command; `code` and `message` only where `status` is rejected."""

    query_id: str
    status: Status
    offset: int
    code: str | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class Ids:
    """Many stream ids as UTF-8 bytes in one buffer (Arrow's layout without the nulls).

    Attributes
    ----------
    starts : int64[n + 1], id i is bytes[starts[i]:starts[i + 1]].
    bytes : uint8[starts[n]] or longer.
    hashes : uint64[n], `kernels.hashing.hash_ids` of each id.
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
class Readings:
    """Readings of one feed and one shard, as columns, ascending by (partition, offset).

    Attributes
    ----------
    event_times, record_times : int64[n], epoch milliseconds.
    values : float64[d, n], finite, one row a dimension, C-contiguous.
    """

    ids: Ids
    event_times: Int64s
    record_times: Int64s
    values: Float64s

    def __len__(self) -> int:
        return self.event_times.size


@dataclass(frozen=True, slots=True)
class Crossings:
    """Crossings of one feed, as columns, in output order.

    Attributes
    ----------
    ids : the streams, one a crossing (repeated ids are repeated).
    queries : the definitions that `query_rows` points into.
    query_rows : int32[n].
    signs, reasons : int8[n], `Sign` and `Reason`.
    event_times : int64[n], epoch ms of the reading, or the stream's last one where no reading caused it.
    ordinals : int32[n], how many readings of the stream at that event time came before the one meant.
    values : float64[d, n], the stream's value.
    previous_times : int64[n], valid where `has_previous`.
    previous_values : float64[d, n], valid where `has_previous`.
    has_previous : bool[n], true for `moved`.
    record_times : int64[n], epoch ms of the record that caused it; -1 where no reading did.
    """

    feed: str
    ids: Ids
    queries: tuple[BorderQuery, ...]
    query_rows: Int32s
    signs: Int8s
    reasons: Int8s
    event_times: Int64s
    ordinals: Int32s
    values: Float64s
    previous_times: Int64s
    previous_values: Float64s
    has_previous: Bools
    record_times: Int64s

    def __len__(self) -> int:
        return self.query_rows.size


@dataclass(frozen=True, slots=True)
class StreamRows:
    """The last reading of some streams of one feed: rows of the stream table.

    Attributes
    ----------
    event_times : int64[n], epoch ms.
    ordinals : int32[n], how many readings came before this one at the same event time.
    values : float64[d, n].
    """

    ids: Ids
    event_times: Int64s
    ordinals: Int32s
    values: Float64s


@dataclass(frozen=True, slots=True)
class Delta:
    """What changed in one shard; a snapshot is a list of these, applied to an empty monitor.

    Attributes
    ----------
    commands : the accepted ones, in offset order. They are applied before the rest.
    streams : feed name -> the streams touched, as they are now.
    silent : (query id, stream id) -> whether that membership is silent now.
    """

    commands: tuple[Put | Delete, ...]
    streams: Mapping[str, StreamRows]
    silent: Mapping[tuple[str, str], bool]
