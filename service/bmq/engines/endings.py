"""Queries that end in the middle of a batch: what they would have told later is dropped, and their members leave.

readings ──•────•────────•──────•──►
due           members at the due = members now, with what came after it taken back
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bmq.engines.events import Events, When, some_events
from bmq.engines.query_table import FOREVER
from bmq.index.stream_table import Chained
from bmq.records import Float64s, Int32s, Reason, Sign

if TYPE_CHECKING:
    from bmq.engines.feed import FeedEngine


@dataclass(frozen=True, slots=True)
class PairEnd:
    """All pairs of a tracked query end at ``moment``; ``streams`` are those it may have one with."""

    query: int
    moment: int
    streams: Int32s
    values: Float64s


@dataclass(frozen=True, slots=True)
class Endings:
    """What the end of queries does: leaves of plain ones, and the ends of tracked pairs."""

    leaves: list[Events]
    pair_ends: list[PairEnd]


def end_queries(
    engine: "FeedEngine", found: Events, dues: list[tuple[int, int]], chained: Chained | None
) -> tuple[Events, Endings]:
    """Return the events without those behind the end of their query, and what the ends bring about.

    Parameters
    ----------
    found : events of region slots, of the whole batch.
    dues : (epoch ms, query slot) of the queries that end.
    """
    due_by_slot = np.full(engine.queries.owners.size, FOREVER, dtype=np.int64)
    for due, slot in dues:
        due_by_slot[slot] = due
    owners = engine.queries.owners[found.queries]
    is_late = found.moments > due_by_slot[owners]
    late = found.where(is_late)
    late = late.where(np.lexsort((late.passes, late.rows, late.whens, late.moments)))
    found, owners = found.where(~is_late), owners[~is_late]
    endings = Endings([], [])
    late_slots = set(late.queries.tolist())
    for due, slot in dues:
        if engine.queries.tracked[slot]:
            pairs = np.union1d(engine.pairs.rows_of(slot)[0], found.streams[owners == slot]).astype(np.int32)
            endings.pair_ends.append(PairEnd(slot, due, pairs, _values_at(engine, pairs, due, chained)))
            continue
        members = engine.members(slot)
        if slot in late_slots:
            members = _members_before(members, late.where(late.queries == slot))
        if members.size:
            endings.leaves.append(
                some_events(
                    members.size,
                    queries=np.full(members.size, slot, dtype=np.int32),
                    streams=members,
                    moments=np.full(members.size, due, dtype=np.int64),
                    when=When.QUERY_EXPIRED,
                    signs=Sign.LEFT,
                    reasons=Reason.QUERY_EXPIRED,
                    ordinals=np.zeros(members.size, dtype=np.int32),
                    values=_values_at(engine, members, due, chained),
                )
            )
    return found, endings


def _members_before(members: Int32s, late: Events) -> Int32s:
    """Return the members before the late events, given in order, made them what they are now."""
    # Signs alternate, so the first one after the due says what the stream was at it.
    streams, first = np.unique(late.streams, return_index=True)
    was_inside = late.signs[first] < 0
    return np.union1d(np.setdiff1d(members, streams), streams[was_inside]).astype(np.int32)


def _values_at(engine: "FeedEngine", streams: Int32s, moment: int, chained: Chained | None) -> Float64s:
    """Return the value of each stream's last reading at ``moment`` or before, float64[d, n]."""
    values = engine.streams.values[: engine.n_dims, streams]
    if chained is None or not streams.size:
        return values
    later = np.flatnonzero(chained.event_times > moment)
    slots, first = np.unique(chained.slots[later], return_index=True)
    at = np.searchsorted(slots, streams)
    moved_on = (at < slots.size) & (slots[np.minimum(at, max(slots.size - 1, 0))] == streams) if slots.size else at < 0
    rows = later[first[at[moved_on]]]
    values[:, moved_on] = chained.previous_values[: engine.n_dims, rows]
    return values
