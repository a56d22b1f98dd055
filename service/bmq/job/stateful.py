"""The stateful operator: one key a shard, a monitor for each, state as a log of deltas.

The only code that is called by `transformWithStateInPandas`. For each shard and batch:

1. read the head, bring the replica to it (`job.replicas`);
2. take the frames: commands by offset, readings by feed and partition, dead letters;
3. apply the commands, then advance each feed by its readings and its clock;
4. write the delta and the head;
5. give out events, replies, dead letters and one row of counters.

The replica leaves the cache before step 3 and comes back after step 4, so a task that fails between leaves none.
"""

import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

from bmq.counters import ShardCounters, count_latencies
from bmq.job.output import counters_row, message_rows
from bmq.job.plan import Plan
from bmq.job.received import Frames, read_frames
from bmq.job.replicas import Head, Replica, catch_up, commit, read_head, state_bytes
from bmq.monitor.joined import cut_crossings
from bmq.monitor.monitor import Monitor
from bmq.records import NEVER, Clock, Crossings, Pattern, Reason, Reply, Sign
from bmq.records.joining import concat_readings
from bmq.wire.dead_letters import render_dead_letters
from bmq.wire.events import render_crossings
from bmq.wire.membership import render_membership
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
        outcome = run_batch(replica.monitor, frames, plan.feeds)  # 3
        new_head = commit(replica, head, self._store, frames.next_offsets)  # 4
        _replicas[plan.run_id, shard] = replica
        for batch in render(plan, shard, head, frames, outcome):  # 5
            yield message_rows(batch)
        counters = count(shard, frames, outcome, replica.monitor, new_head, is_rebuilt=is_rebuilt)
        yield counters_row(shard, msgspec.json.encode(counters).decode())


@dataclass(slots=True)
class Outcome:
    """What one batch did to one shard.

    late, suppressed : feed -> readings that changed nothing, events that an option of their query keeps back.
    visits, useful : index entries looked at for readings, and those of them that became crossings.
    """

    replies: list[Reply]
    crossings: list[Crossings]
    late: dict[str, int] = field(default_factory=dict)
    suppressed: dict[str, int] = field(default_factory=dict)
    visits: int = 0
    useful: int = 0


def run_batch(monitor: Monitor, frames: Frames, feeds: Iterable[str]) -> Outcome:
    """Apply commands, then readings; both in order.

    Every feed advances in every batch, one without readings too: its clock may have moved, and a command may have
    begun what is due already.
    """
    applied = monitor.apply(frames.commands)
    outcome = Outcome(applied.replies, applied.crossings)
    for feed in feeds:
        parts = frames.readings.get(feed)
        readings = None if parts is None else concat_readings(parts)
        advanced = monitor.advance(feed, readings, frames.clocks.get(feed, Clock()))
        outcome.replies.extend(advanced.replies)
        if advanced.crossings is not None:
            outcome.crossings.append(advanced.crossings)
            outcome.useful += len(advanced.crossings)
        outcome.late[feed] = advanced.n_late + frames.late.get(feed, 0)
        outcome.suppressed[feed] = advanced.n_suppressed
        outcome.visits += advanced.visits
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
            if plan.membership_topic is not None:
                members = render_membership(piece, plan.feeds[crossings.feed], topic=plan.membership_topic)
                if members.num_rows:
                    yield members
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
    events: Counter[tuple[str, str, str]] = Counter()
    latencies = []
    now_ms = time.time_ns() // 1_000_000
    for crossings in outcome.crossings:
        events += count_events(crossings)
        caused = crossings.record_times >= 0
        latencies.append(now_ms - crossings.record_times[caused])
    left_out = Counter(frames.late)  # they were read, too
    dead: dict[str, Counter[str]] = {}
    for letters in frames.dead_letters:
        for feed, code in zip(letters["feed"].to_pylist(), letters["code"].to_pylist(), strict=True):
            dead.setdefault(feed, Counter())[code] += 1
    counters: ShardCounters = {
        "shard": shard,
        "readings": dict(Counter({feed: sum(map(len, parts)) for feed, parts in frames.readings.items()}) + left_out),
        "late": {feed: n for feed, n in outcome.late.items() if n},
        "suppressed": {feed: n for feed, n in outcome.suppressed.items() if n},
        "dead_letters": {feed: dict(codes) for feed, codes in dead.items()},
        "events": [(*key, n) for key, n in events.items()],
        "replies": dict(Counter(reply.status.value for reply in outcome.replies)) if shard == 0 else {},
        "queries": monitor.n_queries(),
        "pending": monitor.n_pending(),
        "streams": monitor.n_streams(),
        "clocks": monitor.clocks(),
        "visits": {"border": outcome.visits},
        "useful": {"border": outcome.useful},
        "state_bytes": state_bytes(head),
        "replica_rebuilds": int(is_rebuilt),
    }
    if latencies:
        counters["latency"] = count_latencies(np.concatenate(latencies))
    return counters


def count_events(crossings: Crossings) -> Counter[tuple[str, str, str]]:
    """Return how many events there are of each kind, sign and reason; of a transition the reason is its pattern."""
    counts: Counter[tuple[str, str, str]] = Counter()
    codes = (crossings.signs == Sign.ENTERED) * len(Reason) + crossings.reasons
    if crossings.began is not None:
        is_border = crossings.began == NEVER
        codes = codes[is_border]
        patterns = np.array([query.pattern or 0 for query in crossings.queries], dtype=np.int8)
        for pattern, n in enumerate(np.bincount(patterns[crossings.query_rows[~is_border]]).tolist()):
            if n:
                counts["transition", "", Pattern(pattern).text] = n
    for code, n in enumerate(np.bincount(codes).tolist()):
        if n:
            counts["border", "-+"[code // len(Reason)], Reason(code % len(Reason)).text] = n
    return counts


def _take_replica(run_id: str, shard: int) -> Replica | None:
    for other in [key for key in _replicas if key[0] != run_id]:
        del _replicas[other]
    return _replicas.pop((run_id, shard), None)


def _batch_id() -> int:
    context = TaskContext.get()
    assert context is not None, "handleInputRows runs inside a task"
    return int(context.getLocalProperty("streaming.sql.batchId") or 0)
