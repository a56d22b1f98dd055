"""How large a machine or a cluster must be, from what one stream, query, reading and event were measured to cost.

    demand ─► cores ─► shards, one for each core ─► memory: streams once, queries once a shard

`bench.costs` measures the costs (bench/README.md, capacity). They hold for its machine: a core of another one does more
or less. docs/capacity.md says what they leave out.
"""

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Costs:
    """What one of each thing costs.

    Attributes
    ----------
    reading_us, event_us : processor time of all processes of the service, µs.
    stream_bytes : memory of a stream, in the home of its shard.
    query_bytes : memory of a query, in each home.
    home_bytes : memory of a home without streams and queries.
    other_bytes : memory of the other processes of one machine: the JVM with its heap, Python's workers, the writer.
    checkpoint_stream_bytes, checkpoint_query_bytes : on the disk of the checkpoint, of all shards together.
    reading_bytes, event_bytes : of a record in Kafka, before compression.
    """

    reading_us: float
    event_us: float
    stream_bytes: int
    query_bytes: int
    home_bytes: int
    other_bytes: int
    checkpoint_stream_bytes: int
    checkpoint_query_bytes: int
    reading_bytes: int
    event_bytes: int


MEASURED = Costs(
    reading_us=2.52,
    event_us=8.09,
    stream_bytes=132,
    query_bytes=1_721,
    home_bytes=126_000_000,
    other_bytes=3_200_000_000,
    checkpoint_stream_bytes=141,
    checkpoint_query_bytes=180,
    reading_bytes=65,
    event_bytes=263,
)

BUSY_SHARE = 0.6  # of a core, in a plan: the rest is for peaks, for catching up after a restart, and for the machine


@dataclass(frozen=True, slots=True)
class Demand:
    """What is asked for.

    Attributes
    ----------
    rate : readings/s of all feeds.
    events_per_reading : how many events a reading has on average.
    """

    streams: int
    queries: int
    rate: float
    events_per_reading: float = 0.1


@dataclass(frozen=True, slots=True)
class Need:
    """What it takes.

    Attributes
    ----------
    busy_cores : cores that are busy all the time, on average.
    cores : cores to plan, BUSY_SHARE of them busy. As many shards.
    home_bytes : memory of one home.
    memory_bytes : of all homes, and of one machine's other processes.
    checkpoint_bytes : on disk.
    in_bytes, out_bytes : bytes/s from and to Kafka, before compression.
    """

    busy_cores: float
    cores: int
    home_bytes: int
    memory_bytes: int
    checkpoint_bytes: int
    in_bytes: float
    out_bytes: float


def need(demand: Demand, costs: Costs = MEASURED) -> Need:
    """Return what a demand takes. Cores are planned for BUSY_SHARE, and there is a shard for each core."""
    events = demand.rate * demand.events_per_reading
    busy = (demand.rate * costs.reading_us + events * costs.event_us) / 1e6
    cores = max(1, math.ceil(busy / BUSY_SHARE))
    of_streams = math.ceil(demand.streams / cores) * costs.stream_bytes
    home = costs.home_bytes + of_streams + demand.queries * costs.query_bytes
    return Need(
        busy_cores=busy,
        cores=cores,
        home_bytes=home,
        memory_bytes=cores * home + costs.other_bytes,
        checkpoint_bytes=demand.streams * costs.checkpoint_stream_bytes + demand.queries * costs.checkpoint_query_bytes,
        in_bytes=demand.rate * costs.reading_bytes,
        out_bytes=events * costs.event_bytes,
    )
