"""All output of one shard and batch as messages, in pieces that Arrow can hold."""

from collections.abc import Iterator, Sequence

import pyarrow as pa

from bmq.job.outcome import ShardResult
from bmq.job.plan import Plan
from bmq.job.received import Frames
from bmq.job.replicas import Head
from bmq.monitor.crossing_batches import cut_crossings, cut_pairs
from bmq.records import Crossings, Reply
from bmq.wire.dead_letters import render_dead_letters
from bmq.wire.event_messages import render_crossings
from bmq.wire.join_event_messages import render_pairs
from bmq.wire.membership import render_membership
from bmq.wire.replies import render_replies

# How many rows are rendered and leave at once: some megabytes. An Arrow column holds at most 2 GiB; smaller pieces
# would only repeat the fixed cost of each rendering.
PIECE_ROWS = 20_000


def has_messages(shard: int, frames: Frames, result: ShardResult) -> bool:
    """Return whether ``render`` may yield messages."""
    return bool(result.crossings or result.pairs or frames.dead_letters or (shard == 0 and result.replies))


def render(
    plan: Plan, shard: int, batch: int, head: Head, frames: Frames, result: ShardResult
) -> Iterator[pa.RecordBatch]:
    """Yield messages: events of regions, events of joins, replies, dead letters.

    Parameters
    ----------
    shard, batch : the numbers of the shard and of the batch.
    head : the head of the state before the batch, with the next offsets of the feeds when the commands took effect.
    """
    yield from render_events(plan, result)
    # Only shard 0 replies, because every shard has every command.
    if shard == 0 and result.replies:
        yield from _render_replies(plan, batch, head, result.replies)
    for letters in frames.dead_letters:
        yield render_dead_letters(letters, topic=plan.dead_letter_topic)


def render_events(plan: Plan, result: ShardResult) -> Iterator[pa.RecordBatch]:
    """Yield messages: events of regions, events of joins."""
    for crossings in result.crossings:
        yield from _render_crossings(plan, crossings)
    for pairs in result.pairs:
        for piece in cut_pairs(pairs, PIECE_ROWS):
            yield render_pairs(piece, plan.feeds, topic=plan.events_topic, key=plan.events_key)


def _render_crossings(plan: Plan, crossings: Crossings) -> Iterator[pa.RecordBatch]:
    feed = plan.feeds[crossings.feed]
    for piece in cut_crossings(crossings, PIECE_ROWS):
        yield render_crossings(piece, feed, topic=plan.events_topic, key=plan.events_key, layout=plan.events_layout)
        if plan.membership_topic is not None:
            members = render_membership(piece, feed, topic=plan.membership_topic)
            if members.num_rows:
                yield members


def _render_replies(plan: Plan, batch: int, head: Head, replies: Sequence[Reply]) -> Iterator[pa.RecordBatch]:
    offsets = {
        feed: {str(p): at for p, at in (partitions | head.next_offsets.get(feed, {})).items()}
        for feed, partitions in plan.start_offsets.items()
    }
    for begin in range(0, len(replies), PIECE_ROWS):
        piece = replies[begin : begin + PIECE_ROWS]
        yield render_replies(piece, topic=plan.replies_topic, batch=batch, feed_offsets=offsets)
