"""The stateful operator: one key a shard, a monitor for each, state as a log of deltas.

The only code that is called by `transformWithStateInPandas`. For each shard and batch:

1. read the head, bring the replica to it (`job.replicas`);
2. take the frames: commands by offset, readings by feed and partition, dead letters;
3. apply the commands, then advance by the readings;
4. write the delta and the head;
5. give out events, replies, dead letters and one row of counters.

The replica leaves the cache before step 3 and comes back after step 4, so a task that fails between leaves none.
"""

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

from bmq.counters import ShardCounters, count_latencies
from bmq.job.decode import Kind
from bmq.job.output import counters_row, message_rows
from bmq.job.plan import Plan
from bmq.job.replicas import Head, Replica, catch_up, commit, read_head, state_bytes
from bmq.monitor.joined import cut_crossings
from bmq.monitor.monitor import Monitor
from bmq.records import Command, Crossings, Readings, Reason, Reply, Sign
from bmq.wire.dead_letters import render_dead_letters
from bmq.wire.events import render_crossings
from bmq.wire.frames import concat_readings, unpack_commands, unpack_dead_letters, unpack_readings
from bmq.wire.replies import render_replies

# Messages that are rendered and leave at once: some megabytes. A column of Arrow's holds 2 GiB, and the JVM keeps ten
# times a batch alive; fewer would only repeat what each rendering costs.
PIECE_ROWS = 20_000

# Replicas of the streaming query that this worker serves: (run id, shard) -> replica. Spark keeps a worker process
# for many batches; another run's replicas are dropped at its first batch here.
_replicas: dict[tuple[str, int], Replica] = {}


class SparkStore:
    """`job.replicas.Store` over Spark's state API."""

    def __init__(self, handle: StatefulProcessorHandle) -> None:
        self._head = handle.getValueState("head", "head binary")
        self._log = handle.getMapState("log", "name string", "content binary")

    def head(self) -> bytes | None:
        """Return the head of the current key."""
        row = self._head.get()
        return None if row is None else bytes(row[0])

    def set_head(self, head: bytes) -> None:
        """Replace the head of the current key."""
        self._head.update((head,))

    def get(self, key: str) -> bytes | None:
        """Return an entry or page of the current key."""
        row = self._log.getValue((key,))
        return None if row is None else bytes(row[0])

    def put(self, key: str, value: bytes) -> None:
        """Write an entry or page of the current key."""
        self._log.updateValue((key,), (value,))

    def remove(self, key: str) -> None:
        """Remove an entry or page of the current key."""
        self._log.removeKey((key,))


@dataclass(slots=True)
class Frames:
    """What one shard received in one batch, in the order in which it applies.

    next_offsets : feed -> partition -> first offset after this batch.
    """

    commands: list[Command] = field(default_factory=list)
    readings: dict[str, list[Readings]] = field(default_factory=dict)
    dead_letters: list[pa.RecordBatch] = field(default_factory=list)
    next_offsets: dict[str, dict[int, int]] = field(default_factory=dict)


class ShardProcessor(StatefulProcessor):
    """Spark's face of the monitors."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state. Called by Spark once a task."""
        self._store = SparkStore(handle)

    def close(self) -> None:
        """Nothing is held between tasks but the replicas."""

    def handleInputRows(
        self,
        key: Any,
        rows: Iterator[pd.DataFrame],
        timerValues: Any,
    ) -> Iterator[pd.DataFrame]:
        """Run one batch of one shard; the steps are those of the module's docstring."""
        plan = self._plan
        shard = plan.shard_keys.index(key[0])
        frames = read_frames(pd.concat(rows))  # 2
        head = read_head(self._store)  # 1
        replica, is_rebuilt = catch_up(
            _take_replica(plan.run_id, shard),
            head,
            self._store,
            lambda: Monitor(plan.feeds, plan.silent_tombstones_before),
        )
        outcome = run_batch(replica.monitor, frames)  # 3
        new_head = commit(replica, head, self._store, frames.next_offsets)  # 4
        _replicas[plan.run_id, shard] = replica
        for batch in render(plan, shard, head, frames, outcome):  # 5
            yield message_rows(batch)
        counters = count(shard, frames, outcome, replica.monitor, new_head, is_rebuilt=is_rebuilt)
        yield counters_row(shard, msgspec.json.encode(counters).decode())


@dataclass(slots=True)
class Outcome:
    """What one batch did to one shard.

    visits, useful : index entries looked at for readings, and those of them that became crossings.
    """

    replies: list[Reply]
    crossings: list[Crossings]
    late: dict[str, int]
    visits: int
    useful: int


def read_frames(rows: pd.DataFrame) -> Frames:
    """Return the frames of one shard in the order of (kind, feed, partition, offset)."""
    frames = Frames()
    ordered = rows.sort_values(["kind", "feed", "partition", "first_offset"], kind="stable")
    for row in ordered.itertuples(index=False):
        if row.kind == Kind.COMMANDS:
            frames.commands.extend(unpack_commands(row.frame))
            continue
        if row.kind == Kind.DEAD_LETTERS:
            frames.dead_letters.append(unpack_dead_letters(row.frame))
            continue
        frames.next_offsets.setdefault(row.feed, {})[int(row.partition)] = int(row.next_offset)
        readings = unpack_readings(row.frame)
        if len(readings):
            frames.readings.setdefault(row.feed, []).append(readings)
    return frames


def run_batch(monitor: Monitor, frames: Frames) -> Outcome:
    """Apply commands, then readings; both in order."""
    applied = monitor.apply(frames.commands)
    outcome = Outcome(applied.replies, applied.crossings, {}, 0, 0)
    for feed, parts in frames.readings.items():
        advanced = monitor.advance(feed, concat_readings(parts))
        outcome.crossings.append(advanced.crossings)
        outcome.late[feed] = advanced.n_late
        outcome.visits += advanced.visits
        outcome.useful += len(advanced.crossings)
    return outcome


def render(plan: Plan, shard: int, head: Head, frames: Frames, outcome: Outcome) -> Iterator[pa.RecordBatch]:
    """Yield everything the batch has to say, as messages. Shard 0 answers for all: every shard has every command."""
    for crossings in outcome.crossings:
        for piece in cut_crossings(crossings, PIECE_ROWS):
            yield render_crossings(
                piece,
                plan.feeds[crossings.feed],
                topic=plan.events_topic,
                key=plan.events_key,
                layout=plan.events_layout,
            )
    if shard == 0 and outcome.replies:
        offsets = {
            feed: {str(p): at for p, at in (partitions | head.next_offsets.get(feed, {})).items()}
            for feed, partitions in plan.start_offsets.items()
        }
        for begin in range(0, len(outcome.replies), PIECE_ROWS):
            replies = outcome.replies[begin : begin + PIECE_ROWS]
            yield render_replies(replies, topic=plan.replies_topic, batch=_batch_id(), feed_offsets=offsets)
    for letters in frames.dead_letters:
        yield render_dead_letters(letters, topic=plan.dead_letter_topic)


def count(
    shard: int, frames: Frames, outcome: Outcome, monitor: Monitor, head: Head, *, is_rebuilt: bool
) -> ShardCounters:
    """Return the counters of one batch and shard."""
    events: Counter[tuple[str, Reason]] = Counter()
    latencies = []
    now_ms = time.time_ns() // 1_000_000
    for crossings in outcome.crossings:
        codes = (crossings.signs == Sign.ENTERED) * len(Reason) + crossings.reasons
        for code, n in enumerate(np.bincount(codes).tolist()):
            if n:
                events["-+"[code // len(Reason)], Reason(code % len(Reason))] += n
        caused = crossings.record_times >= 0
        latencies.append(now_ms - crossings.record_times[caused])
    dead: dict[str, Counter[str]] = {}
    for letters in frames.dead_letters:
        for feed, code in zip(letters["feed"].to_pylist(), letters["code"].to_pylist(), strict=True):
            dead.setdefault(feed, Counter())[code] += 1
    counters: ShardCounters = {
        "shard": shard,
        "readings": {feed: sum(map(len, parts)) for feed, parts in frames.readings.items()},
        "late": outcome.late,
        "dead_letters": {feed: dict(codes) for feed, codes in dead.items()},
        "events": [("border", sign, reason.text, n) for (sign, reason), n in events.items()],
        "replies": dict(Counter(reply.status.value for reply in outcome.replies)) if shard == 0 else {},
        "queries": {"border": monitor.n_queries},
        "streams": monitor.n_streams(),
        "visits": {"border": outcome.visits},
        "useful": {"border": outcome.useful},
        "state_bytes": state_bytes(head),
        "replica_rebuilds": int(is_rebuilt),
    }
    if latencies:
        counters["latency"] = count_latencies(np.concatenate(latencies))
    return counters


def _take_replica(run_id: str, shard: int) -> Replica | None:
    for other in [key for key in _replicas if key[0] != run_id]:
        del _replicas[other]
    return _replicas.pop((run_id, shard), None)


def _batch_id() -> int:
    context = TaskContext.get()
    assert context is not None, "handleInputRows runs inside a task"
    return int(context.getLocalProperty("streaming.sql.batchId") or 0)
