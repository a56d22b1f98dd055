"""How much of a machine a load takes, reckoned from costs that `bench/costs.py` measured. Knows no other module.

What is reckoned holds for the shapes that were measured (boxes in two dimensions, JSON readings of 60 bytes, one record
for each crossing, exactly once) on one kind of machine: a rough size, not a promise. docs/capacity.md says more.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

USED_AT_MOST = 0.7  # of a core or of the memory: the rest is for bursts, restarts and what was not measured


@dataclass(frozen=True, slots=True)
class Costs:
    """Measured costs.

    Attributes
    ----------
    reading_s, crossing_s, put_s : seconds of a core in all processes of the service, for each.
    reading_home_s, crossing_home_s, crossing_writer_s : the part of the home of a shard, and of the writer.
    reading_broker_s, crossing_broker_s : seconds of a core in a broker of one node.
    shard_batch_s : seconds of a core that a shard takes in each batch, with readings or without.
    stream_bytes, query_bytes : of memory; a query's in each shard.
    stream_stored_bytes, query_stored_bytes : of the checkpoint; a query's in each shard.
    jvm_bytes, python_bytes : of memory before there is any stream or query.
    """

    reading_s: float
    reading_home_s: float
    reading_broker_s: float
    crossing_s: float
    crossing_home_s: float
    crossing_writer_s: float
    crossing_broker_s: float
    put_s: float
    shard_batch_s: float
    stream_bytes: float
    query_bytes: float
    stream_stored_bytes: float
    query_stored_bytes: float
    jvm_bytes: float
    python_bytes: float


@dataclass(frozen=True, slots=True)
class Load:
    """What a service is to bear.

    Attributes
    ----------
    streams, queries : how many.
    rate : readings a second.
    crossings : borders that a reading crosses on average; each is an event.
    reading_bytes, event_bytes : of a record in Kafka.
    """

    streams: int
    queries: int
    rate: float
    crossings: float
    reading_bytes: int = 60
    event_bytes: int = 280


@dataclass(frozen=True, slots=True)
class Machine:
    """Where it runs: all executors of a cluster together, or one machine."""

    cores: int
    memory_bytes: float


@dataclass(frozen=True, slots=True)
class Limit:
    """One thing that a load takes, and how much of it there is."""

    name: str
    taken: float
    there: float
    unit: str
    way_out: str

    @property
    def share(self) -> float:
        """How much of it is taken; over 1 it breaks."""
        return self.taken / self.there


@dataclass(frozen=True, slots=True)
class Sizing:
    """What a load takes.

    Attributes
    ----------
    shards : as many as keep each home below `USED_AT_MOST` of a core, two at least.
    cores, broker_cores : kept busy, with a batch each second.
    memory, checkpoint : bytes.
    read, written : bytes a second from and to Kafka.
    limits : the fullest first.
    """

    shards: int
    cores: float
    broker_cores: float
    memory: float
    checkpoint: float
    read: float
    written: float
    limits: tuple[Limit, ...]


def sizing(load: Load, machine: Machine, costs: Costs, shards: int | None = None) -> Sizing:
    """Return what a load takes of a machine; ``shards`` None: as many as it needs."""
    crossing_rate = load.rate * load.crossings
    homes = load.rate * costs.reading_home_s + crossing_rate * costs.crossing_home_s
    shards = shards or max(2, ceil(homes / USED_AT_MOST))
    cores = load.rate * costs.reading_s + crossing_rate * costs.crossing_s + shards * costs.shard_batch_s
    memory = (
        costs.jvm_bytes
        + costs.python_bytes
        + load.streams * costs.stream_bytes
        + load.queries * shards * costs.query_bytes
    )
    limits = (
        Limit("cores", cores, machine.cores, "cores", "take a larger machine, or a cluster"),
        Limit("memory", memory / 1e9, machine.memory_bytes / 1e9, "GB", "take more memory, or fewer shards"),
        Limit("the home of a shard", homes / shards, 1.0, "cores", "raise job.shards (bmq checkpoint rescale)"),
        Limit(
            "the writer of an executor",
            crossing_rate * costs.crossing_writer_s,
            1.0,
            "cores",
            'use topics.layout = "reading", or several executors',
        ),
    )
    return Sizing(
        shards,
        cores,
        load.rate * costs.reading_broker_s + crossing_rate * costs.crossing_broker_s,
        memory,
        load.streams * costs.stream_stored_bytes + load.queries * shards * costs.query_stored_bytes,
        load.rate * load.reading_bytes,
        crossing_rate * load.event_bytes,
        tuple(sorted(limits, key=lambda limit: -limit.share)),
    )


def lines(found: Sizing) -> Iterator[str]:
    """Yield it as lines of text."""
    yield f"shards      {found.shards:,}"
    yield f"cores       {found.cores:,.1f} of the service, {found.broker_cores:,.1f} of the brokers"
    yield f"memory      {found.memory / 1e9:,.1f} GB"
    yield f"checkpoint  {found.checkpoint / 1e9:,.2f} GB"
    yield f"Kafka       {found.read / 1e6:,.1f} MB/s read, {found.written / 1e6:,.1f} MB/s written"
    for limit in found.limits:
        yield f"{limit.share:>6.0%} of {limit.name}: {limit.taken:,.2f} of {limit.there:,.2f} {limit.unit}"
    first = found.limits[0]
    if first.share > 1:
        yield f"Too much: {first.name} breaks first. The way out: {first.way_out}."
    elif first.share > USED_AT_MOST:
        yield f"Tight: {first.name} is the first limit. The way out: {first.way_out}."
    else:
        yield f"It fits. The first limit is {first.name}."


# Of `python -m bench.costs`: see bench/README.md, "Costs". The cost of a shard in a batch is of "Latency" there.
MEASURED = Costs(
    reading_s=0e-6,
    reading_home_s=0e-6,
    reading_broker_s=0e-6,
    crossing_s=0e-6,
    crossing_home_s=0e-6,
    crossing_writer_s=0e-6,
    crossing_broker_s=0e-6,
    put_s=0e-6,
    shard_batch_s=0.072,
    stream_bytes=0,
    query_bytes=0,
    stream_stored_bytes=0,
    query_stored_bytes=0,
    jvm_bytes=3e9,
    python_bytes=0e9,
)
