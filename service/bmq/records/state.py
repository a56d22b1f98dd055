"""What goes from a shard to the state store, and from there to its replicas.

`wire.state_bytes` writes the fields of these records and of `Readings` in their order, each column with the dtype of
its annotation. So the order and the types are in checkpoints: a change of them is a change of `job.replicas.FORMAT`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from bmq.records.arrays import NEVER, Absent, Bytes, Int8s, Int32s, Int64s, RowsOf, Values
from bmq.records.columns import Attributes, Ids, Readings
from bmq.records.commands import Delete, Put
from bmq.records.queries import Query


@dataclass(frozen=True, slots=True)
class StreamRows:
    """The last reading of some streams of one feed: rows of the stream table.

    Attributes
    ----------
    event_times : int64[n], epoch ms; NEVER: the stream is unknown again.
    ordinals : int32[n], how many readings came before this one at the same event time.
    values : float64[d, n].
    attributes : None where the feed has none.
    lags : int64[n], ms: those of the last readings, as in `Readings`. None: no stream has a lag.
    """

    ids: Ids
    event_times: Int64s
    ordinals: Int32s
    values: Values
    attributes: Attributes | None = None
    lags: Annotated[Int64s | None, Absent(0)] = None


@dataclass(frozen=True, slots=True)
class TrackingRows:
    """What is kept of some queries and streams: rows of `engines.tracking.trackings.Trackings`.

    Attributes
    ----------
    query_ids : the queries that ``query_rows`` points into, each once.
    query_rows : int32[n].
    flags : uint8[n]; 0: there is nothing to keep any more.
    reasons : int8[n], ordinals : int32[n], begins : int64[n], values : float64[d, n]
        The pending crossing, if there is one.
    last_entered : int64[n], event time of the last + emitted; NEVER: there is none.
    n_events : int32[n], events emitted.
    """

    query_ids: tuple[str, ...]
    query_rows: Annotated[Int32s, RowsOf("query_ids")]
    ids: Ids
    flags: Bytes
    reasons: Int8s
    ordinals: Int32s
    begins: Int64s
    values: Values
    last_entered: Int64s
    n_events: Int32s


@dataclass(frozen=True, slots=True)
class Clock:
    """How far the event time of a feed has come, epoch ms; NEVER: no reading yet.

    time : the latest event time. earliest : the earliest one, from which a `ttl` runs that was put before any reading.
    """

    time: int = NEVER
    earliest: int = NEVER


@dataclass(frozen=True, slots=True)
class WindowRows:
    """Readings of one feed that are in the window of some window join, in the order in which they were applied.

    Attributes
    ----------
    first : the number of the first of them among all that were applied, from 0; the others follow without a gap.
    ordinals : int32[n], how many readings of the stream at that event time came before.
    """

    first: int
    readings: Readings
    ordinals: Int32s


@dataclass(frozen=True, slots=True)
class JoinRows:
    """What a feed that takes part in joins keeps for them; of all its streams, in every shard.

    Attributes
    ----------
    streams : the streams touched; None: none.
    held : readings that came and are held back; None: none.
    window : readings applied that a window holds; None: none.
    n_recounted : how many readings behind an expiry of their stream were numbered anew.
    """

    streams: StreamRows | None = None
    held: Readings | None = None
    window: WindowRows | None = None
    n_recounted: int = 0


@dataclass(frozen=True, slots=True)
class Delta:
    """What changed in one shard; a snapshot is a list of these, applied to an empty monitor.

    Attributes
    ----------
    commands : the accepted ones, in offset order, then a `Delete` for each query that expired. They are applied
        before the rest.
    streams : feed name -> the streams touched, as they are now.
    silent : (query id, stream id) -> whether that membership is silent now.
    clocks : feed name -> its clock now.
    held : feed name -> readings that came and are held back.
    pairs : feed name -> the pairs touched, as they are now.
    joins : feed name -> what it keeps for joins.
    since : window join -> left and right numbers of the readings that it counts from.
    recounts : feed name -> how many readings behind an expiry of their stream were numbered anew.
    """

    commands: tuple[Put[Query] | Delete, ...] = ()
    streams: Mapping[str, StreamRows] = field(default_factory=dict)
    silent: Mapping[tuple[str, str], bool] = field(default_factory=dict)
    clocks: Mapping[str, Clock] = field(default_factory=dict)
    held: Mapping[str, Readings] = field(default_factory=dict)
    pairs: Mapping[str, TrackingRows] = field(default_factory=dict)
    joins: Mapping[str, JoinRows] = field(default_factory=dict)
    since: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    recounts: Mapping[str, int] = field(default_factory=dict)
