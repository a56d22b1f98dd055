"""One batch of one feed in one shard: what readings and the clock make of standing queries.

    readings ─► stream table ─► crossings of regions ─┬─► plain queries ──────────────────┐
                                silence, passes ──────┘   tracked queries ─► pairs ───────┼─► in telling order
                                queries that end ─────────────────────────────────────────┘

Most batches have nothing but crossings of plain queries; those take the short way, in which no event is a row of
`Events` and nothing is sorted by time.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bmq.engines.feed.crossing_records import to_crossings
from bmq.engines.feed.endings import Endings, end_queries
from bmq.engines.feed.pass_events import find_passes
from bmq.engines.feed.slot_events import Events, When, emit_order, some_events
from bmq.engines.feed.stream_expiry import find_silences
from bmq.engines.feed.tracked_regions import events_of_trackings, items_of_crossings, items_of_ends
from bmq.engines.feed.watched_regions import Steps
from bmq.index.base import Moves, concat_moves
from bmq.index.stream_table import Chained
from bmq.records import Crossings, Int32s, Int64s, Readings, Reason, RegionQuery
from bmq.records.column_records import as_one

if TYPE_CHECKING:
    from bmq.engines.feed.feed_engine import FeedEngine


@dataclass(frozen=True, slots=True)
class Advanced:
    """What a batch did: crossings, queries that ended, and counts for the metrics."""

    crossings: Crossings | None
    expired: list[RegionQuery]
    n_late: int
    visits: int
    n_suppressed: int
    level_visits: int = 0


def advance(engine: "FeedEngine", readings: Readings | None, settled: int) -> Advanced:
    """Apply readings, given ascending by (partition, offset), and let time come to ``settled``.

    Parameters
    ----------
    engine : changed by it.
    readings : None or empty: time goes on alone.
    settled : epoch ms; timers due before it fire. Never less than at the call before.

    Returns
    -------
    Advanced
        Crossings in telling order (docs/semantics.md, order).
    """
    chained = _chain(engine, readings)
    if chained is None and not _may_be_due(engine, settled):
        engine.settled = settled
        return Advanced(None, [], 0, 0, 0)
    steps = _steps(engine, chained)
    moves = engine.regions.crossings(steps) if steps is not None else None
    visits = moves.visits if moves is not None else 0
    levels = _levels(engine, steps)
    level_visits = levels.visits if levels is not None else 0
    n_late = chained.n_late if chained is not None else 0
    if _is_plain(engine, settled):
        crossings = None
        if moves is not None and chained is not None:
            emitted = moves if levels is None else concat_moves([moves, levels])
            crossings = _emit_plain(engine, chained, emitted, readings)
        engine.settled = settled
        return Advanced(crossings, [], n_late, visits, 0, level_visits)
    events, expired, n_suppressed, visit_numbers = _emit_all(engine, chained, steps, moves, levels, settled)
    crossings = to_crossings(engine, events, chained, readings, visit_numbers=visit_numbers)
    for query in expired:
        engine.drop(query.query_id)
    return Advanced(crossings, expired, n_late, visits, n_suppressed, level_visits)


def _chain(engine: "FeedEngine", readings: Readings | None) -> Chained | None:
    if readings is None or not len(readings):
        return None
    engine.residents.moved()
    chained = engine.streams.apply(engine.chained_readings(readings), engine.settled)
    engine.silence_dues.take(chained.event_times)
    return chained


def _may_be_due(engine: "FeedEngine", settled: int) -> bool:
    # What a command began may be due already, so for the others it does not matter whether time goes on.
    can_fall_silent = settled > engine.settled and (engine.streams.can_expire or engine.queries.stream_ttl_counts)
    return bool(can_fall_silent) or engine.dues.any_passed(settled) or engine.trackings.next_due() < settled


def _is_plain(engine: "FeedEngine", settled: int) -> bool:
    """Return whether nothing but crossings of plain queries can come of the batch."""
    return not (
        engine.queries.n_tracked
        or engine.passes
        or engine.streams.can_expire
        or engine.queries.stream_ttl_counts
        or engine.dues.any_passed(settled)
    )


def _steps(engine: "FeedEngine", chained: Chained | None) -> Steps | None:
    if chained is None:
        return None
    previous, previous_codes = engine.split_codes(chained.previous_values)
    values, codes = engine.split_codes(chained.values)
    return Steps(chained.slots, chained.moved, previous, values, previous_codes, codes)


def _levels(engine: "FeedEngine", steps: Steps | None) -> Moves | None:
    if steps is None or not len(engine.levels) or not steps.streams.size:
        return None
    return engine.levels.find(steps.streams, steps.values, steps.codes)


def _emit_plain(engine: "FeedEngine", chained: Chained, moves: Moves, readings: Readings | None) -> Crossings:
    order = _order_at_readings(engine, moves)
    return to_crossings(
        engine, _silenced(engine, _at_readings(chained, _chosen(moves, order), engine.n_dims)), chained, readings
    )


def _order_at_readings(engine: "FeedEngine", moves: Moves) -> Int64s:
    """Return the order of crossings by (row, leaves, enters, levels, query id); rows ascend already."""
    order = np.arange(moves.rows.size)
    tied = np.zeros(order.size, dtype=np.bool_)
    tied[1:] = moves.rows[1:] == moves.rows[:-1]
    tied[:-1] |= tied[1:]
    if tied.any():
        # Query ids are compared only where two crossings of one reading meet: of border queries mostly nowhere.
        among = order[tied]
        sorts = np.array([0, 2, 1])[moves.signs[among] + 1]
        ranks = engine.queries.order_by_id(moves.queries[among])
        order[tied] = among[np.argsort((3 * moves.rows[among].astype(np.int64) + sorts) << 32 | ranks)]
    return order


def _chosen(moves: Moves, rows: Int64s) -> Moves:
    return Moves(moves.rows[rows], moves.queries[rows], moves.signs[rows], moves.visits)


def _silenced(engine: "FeedEngine", events: Events) -> Events:
    emitted_ones = engine.emitted(events)
    return events if emitted_ones.all() else events.where(emitted_ones)


def _at_readings(chained: Chained, moves: Moves, n_dims: int) -> Events:
    rows = moves.rows
    return some_events(
        rows.size,
        queries=moves.queries,
        streams=chained.slots[rows],
        moments=chained.event_times[rows],
        when=When.AT_READING,
        signs=moves.signs,
        reasons=np.where(chained.moved[rows] | (moves.signs == 0), Reason.MOVED, Reason.FIRST_SEEN).astype(np.int8),
        ordinals=chained.ordinals[rows],
        values=chained.values[:n_dims, rows],
        rows=rows,
    )


def _emit_all(
    engine: "FeedEngine",
    chained: Chained | None,
    steps: Steps | None,
    moves: Moves | None,
    levels: Moves | None,
    settled: int,
) -> tuple[Events, list[RegionQuery], int, Int32s]:
    """Return the events of a batch in which timers, tracked queries or passes may have a part.

    1. Streams that fell silent; first sights of streams that had.
    2. Crossings of regions by readings.
    3. Passes.
    4. Queries that end: what comes later is dropped, members leave.
    5. Tracked queries: crossings become items of their pairs.
    6. The order, and the silent members.

    Returns
    -------
    events, queries that ended, number of events suppressed, the visit that each number in ``events.passes`` means
    """
    silences = find_silences(engine, chained, steps, settled)  # 1
    engine.settled = settled
    parts = [silences.leaves, silences.first_sights]
    visit_numbers: Int32s = np.zeros(1, dtype=np.int32)
    if chained is not None and steps is not None and moves is not None:
        crossed = _at_readings(chained, moves, engine.n_dims)  # 2
        parts.append(crossed.where(~silences.cover(engine, crossed)))
        if engine.passes:  # 3
            passes, visit_numbers = find_passes(engine, chained, steps)
            parts.append(passes.where(~silences.cover(engine, passes)))
        if levels is not None:
            parts.append(_at_readings(chained, levels, engine.n_dims))
    found = as_one(parts)
    dues = engine.dues.passed(settled)  # 4
    endings = Endings([], [])
    if dues:
        found, endings = end_queries(engine, found, dues, chained)
    is_tracked = engine.queries.tracked[engine.queries.owners[found.queries]]
    emitted = [found.where(~is_tracked), *endings.leaves]
    n_suppressed = 0
    if engine.queries.n_tracked:  # 5
        items = items_of_crossings(engine, found.where(is_tracked))
        ends = items_of_ends(engine, items, silences.expiries, endings.tracking_ends)
        of_trackings = engine.trackings.run(as_one([items, *ends]), settled, engine.streams.last_times)
        n_suppressed = of_trackings.n_suppressed
        emitted.append(events_of_trackings(of_trackings))
    events = as_one(emitted)  # 6
    events = events.where(emit_order(events, engine.queries.order_by_id(events.queries)))
    return _silenced(engine, events), [engine.queries.query(slot) for _, slot in dues], n_suppressed, visit_numbers
