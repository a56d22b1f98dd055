"""The counters of the operator for one batch and one shard, and their totals.

A shard's counters leave the worker as one small JSON object (`ShardCounters`) and reach the driver through Spark's
observe. The driver adds them to `Totals`, which `metrics` shows. Workers import this module, so it knows numpy, but not
Prometheus, Spark or Kafka.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NotRequired, TypedDict

import numpy as np

from bmq.records import Int64s

# Upper ends, in seconds, inclusive like Prometheus' `le`. The latency of an event is mostly the time of its batch, and
# a small batch takes 0.1 to 0.5, so the steps are finest there. Micro-batches cannot show differences below 0.01. Above
# 60 the service is stuck rather than slow, and the input lag shows by how much.
LATENCY_BUCKETS_SECONDS = (
    0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 30.0, 60.0,
)  # fmt: skip


class LatencyCounts(TypedDict):
    """Event latencies, counted by bucket in the worker that measured them.

    counts : one number for each bucket of LATENCY_BUCKETS_SECONDS (not cumulative), and one for all above the last.
    sum_seconds : the sum of the latencies.
    """

    counts: list[int]
    sum_seconds: float


class ShardCounters(TypedDict):
    """The counters of one shard in one batch; an absent key means zero, or an unchanged size.

    lost : feed -> number of offsets that the broker no longer had when the service came to read them.
    readings, late : feed -> number of readings; ``readings`` includes the late ones.
    suppressed : feed -> number of events that `cooldown` or `max_events` of their query, or `limits.passes`,
        suppressed.
    dead_letters : feed -> code -> number of records.
    events : list of [kind, sign, reason, n]; "" for a sign or reason that the events do not have. The reason of a
        transition event is its pattern.
    replies : status -> n.
    queries : kind -> number of standing queries after the batch (the same in every shard).
    tenants : tenant -> number of its standing queries after the batch (the same in every shard).
    tenant_streams : tenant -> number of the streams that these queries name (the same in every shard).
    streams : feed -> number of streams that the shard knows after the batch.
    lagging : feed -> number of streams in the shard that have a lag after the batch.
    max_lags : feed -> the largest lag of the readings that the shard applied in the batch, ms.
    clocks : feed -> the feed's clock in event time, epoch ms (the same in every shard); absent: no reading yet.
    pending : pending crossings in the shard after the batch: not yet confirmed, or the first half of a pattern.
    visits, useful : engine -> number of visited index entries, and how many of them became events.
    state_bytes : size of the shard's state after the batch.
    replica_rebuilds : number of replicas that had to be read anew from the state store.
    """

    shard: int
    readings: NotRequired[dict[str, int]]
    late: NotRequired[dict[str, int]]
    lost: NotRequired[dict[str, int]]
    suppressed: NotRequired[dict[str, int]]
    dead_letters: NotRequired[dict[str, dict[str, int]]]
    events: NotRequired[list[tuple[str, str, str, int]]]
    replies: NotRequired[dict[str, int]]
    queries: NotRequired[dict[str, int]]
    tenants: NotRequired[dict[str, int]]
    tenant_streams: NotRequired[dict[str, int]]
    streams: NotRequired[dict[str, int]]
    lagging: NotRequired[dict[str, int]]
    max_lags: NotRequired[dict[str, int]]
    clocks: NotRequired[dict[str, int]]
    pending: NotRequired[int]
    visits: NotRequired[dict[str, int]]
    useful: NotRequired[dict[str, int]]
    state_bytes: NotRequired[int]
    replica_rebuilds: NotRequired[int]
    latency: NotRequired[LatencyCounts]


def count_latencies(milliseconds: Int64s) -> LatencyCounts:
    """Return the latencies counted by bucket.

    Parameters
    ----------
    milliseconds : int64[n], the time at which an event leaves the operator minus the timestamp of its record. If the
        clock of a producer is ahead of the service's clock, a latency is negative; it counts as 0, because a negative
        sum would break Prometheus' rate().
    """
    seconds = np.maximum(milliseconds, 0) / 1000.0
    buckets = np.searchsorted(np.array(LATENCY_BUCKETS_SECONDS), seconds, side="left")
    counts = np.bincount(buckets, minlength=len(LATENCY_BUCKETS_SECONDS) + 1)
    return {"counts": counts.tolist(), "sum_seconds": float(seconds.sum())}


@dataclass(slots=True)
class Totals:
    """The sum of all counters since the service started, and the last known sizes.

    A batch contains only the shards that had work, so sizes are kept for each shard and summed on demand.
    """

    readings: Counter[str] = field(default_factory=Counter)
    late: Counter[str] = field(default_factory=Counter)
    lost: Counter[str] = field(default_factory=Counter)
    suppressed: Counter[str] = field(default_factory=Counter)
    dead_letters: Counter[tuple[str, str]] = field(default_factory=Counter)  # (feed, code)
    events: Counter[tuple[str, str, str]] = field(default_factory=Counter)  # (kind, sign, reason)
    replies: Counter[str] = field(default_factory=Counter)
    visits: Counter[str] = field(default_factory=Counter)
    useful: Counter[str] = field(default_factory=Counter)
    replica_rebuilds: int = 0
    latency_counts: list[int] = field(default_factory=lambda: [0] * (len(LATENCY_BUCKETS_SECONDS) + 1))
    latency_sum_seconds: float = 0.0
    queries: dict[str, int] = field(default_factory=dict)  # kind -> n
    tenants: dict[str, int] = field(default_factory=dict)  # tenant -> its queries
    tenant_streams: dict[str, int] = field(default_factory=dict)  # tenant -> streams that its queries name
    clocks: dict[str, int] = field(default_factory=dict)  # feed -> epoch ms
    max_lags: Counter[str] = field(default_factory=Counter)  # feed -> ms, in the last batch
    streams_by_shard: dict[int, dict[str, int]] = field(default_factory=dict)  # shard -> feed -> n
    lagging_by_shard: dict[int, dict[str, int]] = field(default_factory=dict)  # shard -> feed -> n
    pending_by_shard: dict[int, int] = field(default_factory=dict)  # shard -> crossings
    state_bytes_by_shard: dict[int, int] = field(default_factory=dict)  # shard -> bytes

    def add(self, batch: Iterable[ShardCounters]) -> None:
        """Add the counters of one batch, in any order of shards."""
        by_shard = sorted(batch, key=lambda counters: counters["shard"])
        self.max_lags = Counter()
        for counters in by_shard:
            self._add_shard(counters)
        # Commands go to every shard, so all shards agree, and a sum would count a query once for each shard.
        queries = next((counters["queries"] for counters in by_shard if "queries" in counters), None)
        if queries is not None:
            self.queries = dict.fromkeys(self.queries, 0) | queries
        of_tenants = next((counters for counters in by_shard if "tenants" in counters), None)
        if of_tenants is not None:
            self.tenants, self.tenant_streams = of_tenants["tenants"], of_tenants["tenant_streams"]

    def _add_shard(self, counters: ShardCounters) -> None:
        self.readings.update(counters.get("readings", {}))
        self.late.update(counters.get("late", {}))
        self.lost.update(counters.get("lost", {}))
        self.suppressed.update(counters.get("suppressed", {}))
        self.replies.update(counters.get("replies", {}))
        self.visits.update(counters.get("visits", {}))
        self.useful.update(counters.get("useful", {}))
        for feed, by_code in counters.get("dead_letters", {}).items():
            for code, n in by_code.items():
                self.dead_letters[feed, code] += n
        for kind, sign, reason, n in counters.get("events", ()):
            self.events[kind, sign, reason] += n
        # The maximum, because a shard that had no work in the last batches is behind.
        for feed, time in counters.get("clocks", {}).items():
            self.clocks[feed] = max(time, self.clocks.get(feed, time))
        self.replica_rebuilds += counters.get("replica_rebuilds", 0)
        if "latency" in counters:
            counts = counters["latency"]["counts"]
            self.latency_counts = [a + b for a, b in zip(self.latency_counts, counts, strict=True)]
            self.latency_sum_seconds += counters["latency"]["sum_seconds"]
        self.max_lags |= Counter(counters.get("max_lags", {}))  # the larger of each two
        if "lagging" in counters:
            self.lagging_by_shard[counters["shard"]] = counters["lagging"]
        if "streams" in counters:
            self.streams_by_shard[counters["shard"]] = counters["streams"]
        if "pending" in counters:
            self.pending_by_shard[counters["shard"]] = counters["pending"]
        if "state_bytes" in counters:
            self.state_bytes_by_shard[counters["shard"]] = counters["state_bytes"]

    def streams(self) -> Counter[str]:
        """Return the known streams of each feed, summed over the shards."""
        return _summed(self.streams_by_shard)

    def lagging(self) -> Counter[str]:
        """Return the number of streams of each feed that have a lag, summed over the shards."""
        return _summed(self.lagging_by_shard)

    def pending(self) -> int:
        """Return the number of pending crossings in all shards."""
        return sum(self.pending_by_shard.values())

    def state_bytes(self) -> int:
        """Return the size of all shards' state."""
        return sum(self.state_bytes_by_shard.values())

    def processing_efficiency(self) -> dict[str, float]:
        """Return the papers' PE of each engine: the share of the visited index entries that became events.

        An engine without visits is absent, because 0 would mean that all its visits were useless.
        """
        return {engine: self.useful[engine] / visited for engine, visited in self.visits.items() if visited}


def _summed(by_shard: Mapping[int, Mapping[str, int]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for by_feed in by_shard.values():
        total.update(by_feed)
    return total
