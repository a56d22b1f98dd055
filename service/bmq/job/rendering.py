"""All output of one shard and batch as messages, in pieces that Arrow can hold."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import pyarrow as pa
import pyarrow.compute as pc

from bmq.errors import ControlCode
from bmq.job.outcome import ShardResult
from bmq.job.plan import Plan
from bmq.job.received import Frames
from bmq.job.replicas import Head
from bmq.kafka_io.batch_writer import BatchRun
from bmq.kafka_io.output_topics import TopicFaults, TopicUse
from bmq.monitor.crossing_batches import cut_crossings, cut_pairs
from bmq.records import Crossings, Put, Query, Reply, Status
from bmq.wire.dead_letters import render_dead_letters
from bmq.wire.event_messages import LONGEST_LIST_BYTES, render_crossings
from bmq.wire.join_event_messages import render_pairs
from bmq.wire.large_messages import are_too_large, as_dead_letters, longest_list, longest_original
from bmq.wire.membership import render_membership
from bmq.wire.outgoing import divert
from bmq.wire.replies import render_replies

# How many rows are rendered and leave at once: some megabytes. An Arrow column holds at most 2 GiB; smaller pieces
# would only repeat the fixed cost of each rendering.
PIECE_ROWS = 20_000

NO_LIMITS: Mapping[str, int] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Output:
    """What one shard says in one batch.

    Attributes
    ----------
    shard, batch : the numbers of the shard and of the batch.
    head : the head of the state before the batch, with the next offsets of the feeds when the commands took effect.
    """

    plan: Plan
    shard: int
    batch: int
    head: Head
    frames: Frames
    result: ShardResult

    @property
    def has_messages(self) -> bool:
        """Whether ``render`` may yield messages."""
        result = self.result
        return bool(result.crossings or result.pairs or self.frames.dead_letters or self._answers)

    def run(self) -> BatchRun:
        """Return what a writer must know of this run of the batch."""
        return BatchRun(self.batch, self.head.marked, self.has_messages, self.frames.digest())

    def limited_topics(self) -> tuple[str, str]:
        """Return the topics for whose limits `render` has a way out."""
        return self.plan.events_topic, self.plan.dead_letter_topic

    def topic_use(self) -> TopicUse:
        """Return which topics of queries the batch needs; its cost is in queries with events, not in events."""
        named = {topic for query in self._puts().values() if (topic := self._own_topic(query)) is not None}
        users: dict[str, set[str]] = {topic: set() for topic in named}
        accepted = self._accepted().values()
        not_here = {query.query_id for query in accepted} | self._ended()
        for query in self._queries():
            topic = self._own_topic(query)
            if topic is not None:
                # The shard that answers the commands says it for those that are put now, and nobody for those that end.
                users.setdefault(topic, set()).update({query.query_id} - not_here)
        for query in accepted if self.shard == 0 else ():
            if (topic := self._own_topic(query)) is not None:
                users[topic].add(query.query_id)
        of_topics = {topic: frozenset(query_ids) for topic, query_ids in users.items()}
        return TopicUse(self.shard, self.batch, frozenset(named), of_topics)

    def replies(self, faults: TopicFaults) -> list[Reply]:
        """Return the answers to the commands, and a reply for each query whose loss of its topic is not reported."""
        accepted = self._accepted()
        answers = [
            (_degraded(accepted.get(reply.offset), faults) or reply) if reply.status is Status.ACCEPTED else reply
            for reply in self._answers
        ]
        unreported = faults.unreported - {query.query_id for query in accepted.values()}
        lost: dict[str, Reply] = {}
        for query in self._queries() if unreported else ():
            if query.query_id in unreported and (reply := _degraded(query, faults)) is not None:
                lost[query.query_id] = reply
        return [*answers, *lost.values()]

    def render(
        self, faults: TopicFaults, limits: Mapping[str, int] = NO_LIMITS, too_large: Counter[str] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Yield messages: events of regions, events of joins, replies, dead letters.

        Parameters
        ----------
        faults : which topics of queries cannot be used. Events for those go to the events topic.
        limits : topic of the service -> the bytes that it accepts, if it has refused a message. An event that is too
            large for the events topic becomes a dead letter.
        too_large : gets the number of these events, by feed.
        """
        plan = self.plan
        longest = longest_original(limits.get(plan.dead_letter_topic))
        for events in render_events(plan, self.result, longest_list(limits.get(plan.events_topic))):
            for messages in divert(events, faults.missing, plan.events_topic) if faults.missing else (events,):
                large = pa.array(are_too_large(messages, limits)) if limits else None
                if large is None or not large.true_count:
                    yield messages
                    continue
                yield messages.filter(pc.invert(large))
                letters = as_dead_letters(messages.filter(large), limits)
                if too_large is not None:
                    too_large.update(letters.column("feed").to_pylist())
                yield render_dead_letters(letters, topic=plan.dead_letter_topic, longest=longest)
        replies = self.replies(faults)
        if replies:
            yield from _render_replies(plan, self.batch, self.head, replies)
        for letters in self.frames.dead_letters:
            yield render_dead_letters(letters, topic=plan.dead_letter_topic, longest=longest)

    @property
    def _answers(self) -> list[Reply]:
        # Only one shard replies, because every shard has every command.
        return self.result.replies if self.shard == 0 else []

    def _puts(self) -> dict[int, Query]:
        return {command.offset: command.query for command in self.frames.commands if isinstance(command, Put)}

    def _accepted(self) -> dict[int, Query]:
        """Return offset -> query of the puts that were accepted; every shard knows the answers."""
        puts = self._puts()
        accepted = (reply.offset for reply in self.result.replies if reply.status is Status.ACCEPTED)
        return {offset: puts[offset] for offset in accepted if offset in puts}

    def _ended(self) -> set[str]:
        """Return the ids of the queries that ended in this batch: `degraded` would say that they are in effect."""
        ends = {Status.EXPIRED, Status.DELETED}
        return {reply.query_id for reply in self.result.replies if reply.status in ends}

    def _queries(self) -> Iterator[Query]:
        """Yield the queries that have events."""
        for crossings in self.result.crossings:
            yield from crossings.queries
        for pairs in self.result.pairs:
            yield from pairs.queries

    def _own_topic(self, query: Query) -> str | None:
        return query.output_topic if query.output_topic != self.plan.events_topic else None


def render_events(plan: Plan, result: ShardResult, longest: int = LONGEST_LIST_BYTES) -> Iterator[pa.RecordBatch]:
    """Yield messages: events of regions, events of joins; each to the topic that its query names.

    Parameters
    ----------
    longest : as of `render_crossings`.
    """
    for crossings in result.crossings:
        yield from _render_crossings(plan, crossings, longest)
    for pairs in result.pairs:
        for piece in cut_pairs(pairs, PIECE_ROWS):
            yield render_pairs(piece, plan.feeds, topic=plan.events_topic, key=plan.events_key, envelope=plan.envelope)


def _render_crossings(plan: Plan, crossings: Crossings, longest: int) -> Iterator[pa.RecordBatch]:
    feed = plan.feeds[crossings.feed]
    for piece in cut_crossings(crossings, PIECE_ROWS):
        yield render_crossings(
            piece,
            feed,
            topic=plan.events_topic,
            key=plan.events_key,
            layout=plan.events_layout,
            longest=longest,
            envelope=plan.envelope,
        )
        if plan.membership_topic is not None:
            members = render_membership(piece, feed, topic=plan.membership_topic)
            if members.num_rows:
                yield members


def _degraded(query: Query | None, faults: TopicFaults) -> Reply | None:
    """Return the reply that the events of a query go elsewhere; None: they do not."""
    if query is None or query.output_topic is None or query.output_topic not in faults.missing:
        return None
    why = faults.missing[query.output_topic]
    return Reply(query.query_id, Status.DEGRADED, query.version - 1, ControlCode.BAD_OPTION, why)


def _render_replies(plan: Plan, batch: int, head: Head, replies: Sequence[Reply]) -> Iterator[pa.RecordBatch]:
    offsets = {
        feed: {str(p): at for p, at in (partitions | head.next_offsets.get(feed, {})).items()}
        for feed, partitions in plan.start_offsets.items()
    }
    for begin in range(0, len(replies), PIECE_ROWS):
        piece = replies[begin : begin + PIECE_ROWS]
        yield render_replies(piece, topic=plan.replies_topic, batch=batch, feed_offsets=offsets)
