"""What the operator counts in one batch and one shard, and how those counts add up.

A shard's counters leave the worker as one small JSON object (`ShardCounters`), come back to the driver
through Spark's observe, and end in `Totals`, which `metrics` shows. Importable in workers: knows numpy and
nothing of Prometheus, Spark or Kafka.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NotRequired, TypedDict

import numpy as np

from bmq.records import Int64s

# Upper ends, in seconds, inclusive as Prometheus' `le`. An event waits for its batch, and a small batch takes
# about half a second: the steps are finest there. Below 0.01 nothing can be seen through micro-batches; above
# 60 the service is not late but stuck, and input lag says by how much.
LATENCY_BUCKETS_SECONDS = (
    0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 30.0, 60.0,
)  # fmt: skip


class LatencyCounts(TypedDict):
    """Event latencies that were counted where they were measured.

    counts : one number a bucket of LATENCY_BUCKETS_SECONDS (not cumulative), and one for all above the last.
    sum_seconds : their sum.
    """

    counts: list[int]
    sum_seconds: float


class ShardCounters(TypedDict):
    """The counters of one shard in one batch; an absent key counts nothing.

    readings, late : feed -> readings; the late ones are among the readings.
    suppressed : feed -> events that `cooldown` or `max_events` of their query kept back.
    dead_letters : feed -> code -> records.
    events : [kind, sign, reason, n] each; what an event lacks is empty; the reason of a transition is its pattern.
    replies : status -> n.
    queries : kind -> standing queries after the batch (the same in every shard).
    streams : feed -> streams known to the shard after the batch.
    clocks : feed -> how far its event time has come, epoch ms (the same in every shard); absent: no reading yet.
    pending : crossings that wait in the shard after the batch: for a confirmation, or the second half of a pattern.
    visits, useful : engine -> index entries looked at, and those of them that became events.
    state_bytes : size of the shard's state after the batch.
    replica_rebuilds : replicas that had to be read anew from the state store.
    """

    shard: int
    readings: NotRequired[dict[str, int]]
    late: NotRequired[dict[str, int]]
    suppressed: NotRequired[dict[str, int]]
    dead_letters: NotRequired[dict[str, dict[str, int]]]
    events: NotRequired[list[tuple[str, str, str, int]]]
    replies: NotRequired[dict[str, int]]
    queries: NotRequired[dict[str, int]]
    streams: NotRequired[dict[str, int]]
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
    milliseconds : int64[n], event out minus record timestamp in. A producer whose clock is ahead of ours
        gives negative ones; they count as 0, since a negative sum would break Prometheus' rate().
    """
    seconds = np.maximum(milliseconds, 0) / 1000.0
    buckets = np.searchsorted(np.array(LATENCY_BUCKETS_SECONDS), seconds, side="left")
    counts = np.bincount(buckets, minlength=len(LATENCY_BUCKETS_SECONDS) + 1)
    return {"counts": counts.tolist(), "sum_seconds": float(seconds.sum())}


@dataclass(slots=True)
class Totals:
    """The sum of all counters since the service started, and the last known sizes.

    A batch holds only the shards that had work, so sizes are kept for each shard and summed when asked for.
    """

    readings: Counter[str] = field(default_factory=Counter)
    late: Counter[str] = field(default_factory=Counter)
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
    clocks: dict[str, int] = field(default_factory=dict)  # feed -> epoch ms
    streams_by_shard: dict[int, dict[str, int]] = field(default_factory=dict)  # shard -> feed -> n
    pending_by_shard: dict[int, int] = field(default_factory=dict)  # shard -> crossings
    state_bytes_by_shard: dict[int, int] = field(default_factory=dict)  # shard -> bytes

    def add(self, batch: Iterable[ShardCounters]) -> None:
        """Add the counters of one batch, in any order of shards."""
        by_shard = sorted(batch, key=lambda counters: counters["shard"])
        for counters in by_shard:
            self._add_shard(counters)
        # Commands go to every shard, so that all shards agree and summing would count a query once a shard.
        queries = next((counters["queries"] for counters in by_shard if "queries" in counters), None)
        if queries is not None:
            self.queries = dict.fromkeys(self.queries, 0) | queries

    def _add_shard(self, counters: ShardCounters) -> None:
        self.readings.update(counters.get("readings", {}))
        self.late.update(counters.get("late", {}))
        self.suppressed.update(counters.get("suppressed", {}))
        self.replies.update(counters.get("replies", {}))
        self.visits.update(counters.get("visits", {}))
        self.useful.update(counters.get("useful", {}))
        for feed, by_code in counters.get("dead_letters", {}).items():
            for code, n in by_code.items():
                self.dead_letters[feed, code] += n
        for kind, sign, reason, n in counters.get("events", ()):
            self.events[kind, sign, reason] += n
        # Shards that had no work in the last batches are behind.
        for feed, time in counters.get("clocks", {}).items():
            self.clocks[feed] = max(time, self.clocks.get(feed, time))
        self.replica_rebuilds += counters.get("replica_rebuilds", 0)
        if "latency" in counters:
            counts = counters["latency"]["counts"]
            self.latency_counts = [a + b for a, b in zip(self.latency_counts, counts, strict=True)]
            self.latency_sum_seconds += counters["latency"]["sum_seconds"]
        if "streams" in counters:
            self.streams_by_shard[counters["shard"]] = counters["streams"]
        if "pending" in counters:
            self.pending_by_shard[counters["shard"]] = counters["pending"]
        if "state_bytes" in counters:
            self.state_bytes_by_shard[counters["shard"]] = counters["state_bytes"]

    def streams(self) -> Counter[str]:
        """Return the known streams of each feed, summed over the shards."""
        total: Counter[str] = Counter()
        for by_feed in self.streams_by_shard.values():
            total.update(by_feed)
        return total

    def pending(self) -> int:
        """Return the crossings that wait in all shards."""
        return sum(self.pending_by_shard.values())

    def state_bytes(self) -> int:
        """Return the size of all shards' state."""
        return sum(self.state_bytes_by_shard.values())

    def processing_efficiency(self) -> dict[str, float]:
        """Return the papers' PE of each engine: the part of the visited index entries that became events.

        An engine that visited nothing is absent: 0 would read as "all in vain".
        """
        return {engine: self.useful[engine] / visited for engine, visited in self.visits.items() if visited}
