"""One batch of one feed in one shard: apply readings, move the settled time, and return the events of the queries.

    readings ─► stream table ─► crossings of regions ─┬─► plain queries ──────────────────┐
                                silence, passes ──────┘   tracked queries ─► trackings ───┼─► in emit order
                                queries that end ─────────────────────────────────────────┘

Most batches have only crossings of plain queries. Their events are in the order of the readings already, so `advance`
does not sort them by time.
"""

import numpy as np

from bmq.engines.event_columns import Events, When
from bmq.engines.feed.crossing_records import to_crossings
from bmq.engines.feed.endings import Endings, end_queries
from bmq.engines.feed.feed_tables import FeedTables
from bmq.engines.feed.pass_events import find_passes
from bmq.engines.feed.slot_events import emit_order, some_events
from bmq.engines.feed.stream_expiry import find_silences
from bmq.engines.feed.tracked_regions import items_of_crossings, items_of_ends
from bmq.engines.feed.watched_regions import Steps
from bmq.engines.stage_result import StageResult
from bmq.index.base import Moves, concat_moves
from bmq.index.stream_table import Chained
from bmq.records import Crossings, Family, Int8s, Int32s, Int64s, Readings, Reason, RegionQuery, are_of_family
from bmq.records.column_records import as_one, take


def advance(tables: FeedTables, readings: Readings | None, settled: int) -> StageResult:
    """Apply readings, given ascending by (partition, offset), and move the settled time to ``settled``.

    Parameters
    ----------
    tables : changed in place.
    readings : None or empty if only the settled time moves.
    settled : epoch ms; timers due before it fire. Not less than in the previous call.

    Returns
    -------
    StageResult
        Crossings in emit order (docs/semantics.md, order).
    """
    chained = tables.apply(readings) if readings is not None and len(readings) else None
    if chained is None and not _may_be_due(tables, settled):
        tables.settled = settled
        return StageResult()
    steps = _steps(tables, chained)
    moves = tables.regions.crossings(steps) if steps is not None else None
    visits = moves.visits if moves is not None else 0
    levels = _levels(tables, steps)
    level_visits = levels.visits if levels is not None else 0
    n_late = chained.n_late if chained is not None else 0
    max_lag = _max_lag(readings, chained)
    if _is_plain(tables, settled):
        crossings = None
        if moves is not None and chained is not None:
            emitted = moves if levels is None else concat_moves([moves, levels])
            crossings = _emit_plain(tables, chained, emitted, readings)
        tables.settled = settled
        return StageResult(
            _listed(crossings), n_late=n_late, max_lag_ms=max_lag, visits=visits, level_visits=level_visits
        )
    events, expired, n_suppressed, visit_numbers = _emit_all(tables, chained, steps, moves, levels, settled)
    crossings = to_crossings(tables, events, chained, readings, visit_numbers=visit_numbers)
    for query in expired:
        tables.forget(query.query_id)
    return StageResult(
        _listed(crossings),
        expired=[*expired],
        n_late=n_late,
        max_lag_ms=max_lag,
        n_suppressed=n_suppressed,
        visits=visits,
        level_visits=level_visits,
    )


def _max_lag(readings: Readings | None, chained: Chained | None) -> int:
    if readings is None or readings.lags is None or chained is None:
        return 0
    return int(readings.lags[chained.rows].max(initial=0))


def _listed(crossings: Crossings | None) -> list[Crossings]:
    return [] if crossings is None else [crossings]


def _may_be_due(tables: FeedTables, settled: int) -> bool:
    # Timers may be due even if the settled time stays: a command may have started a timer that is due already.
    has_moved = settled > tables.settled
    can_fall_silent = has_moved and (tables.streams.can_expire or tables.queries.stream_ttl_counts)
    next_due = tables.trackings.next_due(has_moved=has_moved)
    return bool(can_fall_silent) or tables.dues.any_passed(settled) or next_due < settled


def _is_plain(tables: FeedTables, settled: int) -> bool:
    """Return whether the batch can emit only crossings of plain queries."""
    return not (
        tables.queries.n_tracked
        or tables.passes
        or tables.streams.can_expire
        or tables.queries.stream_ttl_counts
        or tables.dues.any_passed(settled)
    )


def _steps(tables: FeedTables, chained: Chained | None) -> Steps | None:
    if chained is None:
        return None
    previous, previous_codes = tables.split_codes(chained.previous_values)
    values, codes = tables.split_codes(chained.values)
    return Steps(chained.slots, chained.moved, previous, values, previous_codes, codes)


def _levels(tables: FeedTables, steps: Steps | None) -> Moves | None:
    if steps is None or not len(tables.levels) or not steps.streams.size:
        return None
    return tables.levels.find(steps.streams, steps.values, steps.codes)


def _emit_plain(tables: FeedTables, chained: Chained, moves: Moves, readings: Readings | None) -> Crossings:
    order = _order_at_readings(tables, moves)
    events = _at_readings(chained, take(moves, order), tables.queries.kinds, tables.n_dims)
    return to_crossings(tables, tables.without_silent(events), chained, readings)


def _order_at_readings(tables: FeedTables, moves: Moves) -> Int64s:
    """Return the order of crossings: by row, then leaves, enters and levels, then query id. Their rows ascend."""
    order = np.arange(moves.rows.size)
    tied = np.zeros(order.size, dtype=np.bool_)
    tied[1:] = moves.rows[1:] == moves.rows[:-1]
    tied[:-1] |= tied[1:]
    if tied.any():
        # Only crossings of one reading need the order of query ids; a reading rarely crosses several border regions.
        among = order[tied]
        sorts = np.array([0, 2, 1])[moves.signs[among] + 1]
        ranks = tables.queries.order_by_id(moves.queries[among])
        order[tied] = among[np.argsort((3 * moves.rows[among].astype(np.int64) + sorts) << 32 | ranks)]
    return order


def _at_readings(chained: Chained, moves: Moves, kinds: Int8s, n_dims: int) -> Events:
    """Return the events of ``moves``; ``kinds``: int8[], `Kind.number` by query slot."""
    rows, of_queries = moves.rows, kinds[moves.queries]
    is_move = chained.moved[rows] | are_of_family(of_queries, Family.LEVEL)
    return some_events(
        rows.size,
        queries=moves.queries,
        streams=chained.slots[rows],
        moments=chained.event_times[rows],
        when=When.AT_READING,
        signs=moves.signs,
        kinds=of_queries,
        reasons=np.where(is_move, Reason.MOVED, Reason.FIRST_SEEN).astype(np.int8),
        ordinals=chained.ordinals[rows],
        values=chained.values[:n_dims, rows],
        rows=rows,
    )


def _emit_all(
    tables: FeedTables,
    chained: Chained | None,
    steps: Steps | None,
    moves: Moves | None,
    levels: Moves | None,
    settled: int,
) -> tuple[Events, list[RegionQuery], int, Int32s]:
    """Return the events of a batch that may fire timers, run trackings or find passes.

    1. Find the streams that fell silent, and the first sights of streams that were silent.
    2. Find the crossings of regions by readings.
    3. Find the passes.
    4. End the queries that are due: drop their later events, and let their members leave.
    5. Turn crossings of tracked queries into items, and run their trackings.
    6. Put the events in order, and end silent memberships.

    Returns
    -------
    events, the queries that ended, the number of suppressed events, and the visit number for each number in
    ``events.passes``
    """
    silences = find_silences(tables, chained, steps, settled)  # 1
    tables.settled = settled
    parts = [silences.leaves, silences.first_sights]
    visit_numbers: Int32s = np.zeros(1, dtype=np.int32)
    n_suppressed = 0
    if chained is not None and steps is not None and moves is not None:
        crossed = _at_readings(chained, moves, tables.queries.kinds, tables.n_dims)  # 2
        parts.append(crossed.where(~silences.cover(tables, crossed)))
        if tables.passes:  # 3
            found_passes = find_passes(tables, chained, steps)
            passes, visit_numbers = found_passes.events, found_passes.visit_numbers
            parts.append(passes.where(~silences.cover(tables, passes)))
            n_suppressed = found_passes.n_suppressed
        if levels is not None:
            parts.append(_at_readings(chained, levels, tables.queries.kinds, tables.n_dims))
    found = as_one(parts)
    dues = tables.dues.passed(settled)  # 4
    endings = Endings([], [])
    if dues:
        found, endings = end_queries(tables, found, dues, chained)
    is_tracked = tables.queries.tracked[tables.queries.owners[found.queries]]
    emitted = [found.where(~is_tracked), *endings.leaves]
    if tables.queries.n_tracked:  # 5
        items = items_of_crossings(tables, found.where(is_tracked))
        ends = items_of_ends(tables, items, silences.expiries, endings.tracking_ends)
        streams = tables.streams
        of_trackings = tables.trackings.run(as_one([items, *ends]), settled, streams.last_times, streams.lags)
        n_suppressed += of_trackings.n_suppressed
        emitted.append(of_trackings.events)
    events = as_one(emitted)  # 6
    events = events.where(emit_order(events, tables.queries.order_by_id(events.queries)))
    return tables.without_silent(events), [tables.queries.query(slot) for _, slot in dues], n_suppressed, visit_numbers
