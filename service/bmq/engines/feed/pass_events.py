"""Events of passes: a stream passes through a region between two readings."""

from dataclasses import dataclass, replace

import numpy as np

from bmq.engines.event_columns import Events, When
from bmq.engines.feed.feed_tables import FeedTables
from bmq.engines.feed.pass_search import Visits, short_way
from bmq.engines.feed.slot_events import no_events, some_events
from bmq.engines.feed.watched_regions import Steps
from bmq.index.stream_table import Chained
from bmq.records import Bools, Float64s, Int32s, Int64s, Reason, Sign
from bmq.records.column_records import take
from bmq.records.plane import EAST, TURN, WEST


@dataclass(frozen=True, slots=True)
class PassEvents:
    """The passes of a batch.

    Attributes
    ----------
    events : + and - of each visit.
    visit_numbers : int32[], the visit number for each number in ``events.passes``.
    n_suppressed : events that there would be if no reading had too many visits.
    """

    events: Events
    visit_numbers: Int32s
    n_suppressed: int = 0


def find_passes(tables: FeedTables, chained: Chained, steps: Steps) -> PassEvents:
    """Return the passes of the readings of a batch.

    A visit counts if its query has `passes` and its scope holds both readings. The times are as if the stream moved
    along the straight line between the readings at constant speed. They are rounded to the nearest millisecond, and
    halves to the even one. If a reading visits the regions of one tenant more often than `limits.passes`, these
    visits do not count. Cost: as `Passes.find`.
    """
    moved = np.flatnonzero(chained.moved)
    no_passes = PassEvents(no_events(tables.n_dims), np.zeros(1, dtype=np.int32))
    if not moved.size:
        return no_passes
    at = steps.at(moved)
    visits = tables.passes.find(at.previous, at.values)
    if not visits.rows.size:
        return no_passes
    visits = take(visits, _in_scope(tables, steps, moved[visits.rows], visits.queries))
    is_allowed = _are_allowed(tables, visits)
    n_suppressed = 2 * int(np.count_nonzero(~is_allowed))
    visits = take(visits, is_allowed)
    if not visits.rows.size:
        return replace(no_passes, n_suppressed=n_suppressed)
    rows, queries, numbers = np.tile(moved[visits.rows], 2), np.tile(visits.queries, 2), np.tile(visits.numbers, 2)
    fractions = np.concatenate([visits.begins, visits.ends])
    signs = np.repeat(np.array([Sign.ENTERED, Sign.LEFT], dtype=np.int8), rows.size // 2)
    # At one place, leaves come before enters, except in a region that the stream enters and leaves there.
    is_point = np.tile(visits.begins == visits.ends, 2)
    turns = np.where(is_point & (signs == Sign.LEFT), 2, signs)
    order = np.lexsort((tables.queries.order_by_id(queries), turns, fractions, rows))
    rows, queries, signs, fractions = rows[order], queries[order], signs[order], fractions[order]
    begins, ends = chained.previous_times[rows], chained.event_times[rows]
    events = some_events(
        rows.size,
        queries=queries,
        streams=chained.slots[rows],
        moments=ends,
        when=When.AT_READING,
        signs=signs,
        reasons=Reason.MOVED,
        ordinals=chained.ordinals[rows],
        values=_points(tables, steps.previous[:, rows], steps.values[:, rows], fractions),
        rows=rows.astype(np.int32),
        event_times=times_on_way(begins, ends, fractions),
        passes=np.arange(1, rows.size + 1, dtype=np.int32),
    )
    return PassEvents(events, np.concatenate([[0], numbers[order]]).astype(np.int32), n_suppressed)


def _are_allowed(tables: FeedTables, visits: Visits) -> Bools:
    """Return which visits are not too many of their reading and tenant, bool[n]."""
    most = tables.installation.limits.passes
    n_of_reading = np.bincount(visits.rows, minlength=1)[visits.rows]
    if not (n_of_reading > most).any():
        return np.ones(visits.rows.size, dtype=np.bool_)
    # So no tenant can take the passes of another.
    slots, which = np.unique(visits.queries, return_inverse=True)
    tenants = [tables.installation.tenant_of(tables.queries.query(slot).query_id) for slot in slots.tolist()]
    _, numbers = np.unique([tenant.name if tenant else "" for tenant in tenants], return_inverse=True)
    _, group, n_of_group = np.unique(
        np.stack([visits.rows, numbers[which]]), axis=1, return_inverse=True, return_counts=True
    )
    are_allowed: Bools = n_of_group[group] <= most
    return are_allowed


def times_on_way(begins: Int64s, ends: Int64s, fractions: Float64s) -> Int64s:
    """Return the times, epoch ms, at ``fractions`` of the way from ``begins`` to ``ends``, rounded half to even."""
    twice = 2 * (ends - begins) * fractions
    # 7/10 of 45 ms is 31.5, but a little less in floats: a number that differs from a half only by the error of
    # floats counts as a half.
    halves = np.rint(twice)
    is_half = np.abs(twice - halves) <= 4 * np.spacing(halves)
    return begins + np.rint(np.where(is_half, halves, twice) / 2).astype(np.int64)


def _in_scope(tables: FeedTables, steps: Steps, rows: Int64s, queries: Int32s) -> Bools:
    in_scope = np.ones(rows.size, dtype=np.bool_)
    by_query = np.argsort(queries, kind="stable")
    slots, starts = np.unique(queries[by_query], return_index=True)
    for slot, visits in zip(slots.tolist(), np.split(by_query, starts[1:]), strict=True):
        named, where = tables.regions.named(slot), tables.queries.query(slot).where
        if named is not None:
            in_scope[visits] &= np.isin(steps.streams[rows[visits]], named)
        if where and steps.codes is not None and steps.previous_codes is not None:
            for codes in (steps.previous_codes, steps.codes):
                in_scope[visits] &= tables.regions.attributes.fits_where(where, codes[rows[visits]])
    return in_scope


def _points(tables: FeedTables, previous: Float64s, current: Float64s, fractions: Float64s) -> Float64s:
    if not tables.feed.lonlat:
        # Halving does not round, and it keeps the way from the least float to the largest finite.
        points: Float64s = 2 * (previous / 2 + (current / 2 - previous / 2) * fractions)
        return points
    way = current - previous
    way[0] = short_way(way[0])
    points = previous + way * fractions
    # Back into [-180, 180) if the way crosses the antimeridian.
    points[0] -= TURN * (points[0] >= EAST)
    points[0] += TURN * (points[0] < WEST)
    return points
