"""Tran-Seq: the four region transition events, from in- and out-crossings. Arrays in, numbers out.

    in then out      IN opens, OUT within `within` is the event
    in not out       IN opens, OUT within `within` closes it; not closed, it is the event when `within` is over
    out then in, out not in: mirrored

Source: Lee et al., BMQ-Processor, sections 6.2 and 6.4, figure 8. A crossing is *inserted* under its query and
stream, one of the other side *probes* for it, and a match *deletes* it, or else the end of its time.

Departures. (1) A query has one pattern, so only crossings of the side that opens it are inserted: the other side's
window would hold what no probe asks for. An RTMQ, which reports all four, is four queries. (2) One hash table for all
queries of a feed and shard, of (query, stream). (3) The paper's list by arrival finds what is too old at its tail.
Here `within` differs by query and readings may come out of order, so arrival is not the order of the ends. The blocks
of the table with a bound for each take its place (see `tracking_rows`): crossings that came together lie together, as
in the list. (4) What is too old is deleted when the time of the feed has passed it, and not when the next crossing
arrives: the event of a stay may not wait for another one.
"""

from numba import njit

from bmq.kernels.tracking.pending import begin_pending, due_of, end_pending, is_due_before, note_change
from bmq.kernels.tracking.tracking_events import END, IN, OUT, Items, write_item, write_pending
from bmq.kernels.tracking.tracking_rows import ACCESSES, PENDING, PENDING_IN, PENDING_OUT, Records, Table, add, find
from bmq.records import Float64s, Int32s, Int64s

IN_THEN_OUT, OUT_THEN_IN, IN_NOT_OUT, OUT_NOT_IN = 1, 2, 3, 4  # as `records.Pattern`

# Accesses as the paper counts them (section 6.4, footnote 2): list and hash table, one each.
_INSERT, _PROBE, _DELETE = 2, 1, 2


@njit(cache=True)
def run_transitions(
    tracked: Table,
    options: Records,
    items: Items,
    order: Int64s,
    first: int,
    events: Records,
    values: Float64s,
    n_events: int,
) -> tuple[int, int]:
    """Apply items ``order[first:]``, and emit what is due in between in the same row.

    Parameters and result are those of ``kernels.tracking.noise.run_memberships``. Raises nothing. O(1) an item, no
    allocation.
    """
    for k in range(first, order.size):
        i = order[k]
        action, pattern = items.actions[i], options[items.queries[i]].pattern
        opening = IN if pattern in (IN_THEN_OUT, IN_NOT_OUT) else OUT
        row = find(tracked, items.queries[i], items.streams[i])
        tracked.counts[ACCESSES] += _PROBE
        if row < 0:
            if action != opening:
                continue
            row = add(tracked, options, items.queries[i], items.streams[i])
            if row < 0:
                tracked.counts[ACCESSES] -= _PROBE
                return k, n_events
        if is_due_before(tracked, options, row, items, i):
            n_events = _delete_due(tracked, options, row, due_of(tracked, options, row), events, values, n_events)
        if action == opening:
            begin_pending(tracked, row, items, i, PENDING_IN if opening == IN else PENDING_OUT)
            tracked.counts[ACCESSES] += _INSERT
        elif tracked.rows[row].flags & PENDING:
            if action != END and pattern in (IN_THEN_OUT, OUT_THEN_IN):
                write_item(items, i, 0, tracked.rows[row].begin, events, values, n_events)
                n_events += 1
            end_pending(tracked, row)
            tracked.counts[ACCESSES] += _DELETE
        note_change(tracked, options, row)
    return int(order.size), n_events


@njit(cache=True)
def fire_transitions(
    tracked: Table, options: Records, rows: Int32s, moments: Int64s, events: Records, values: Float64s
) -> int:
    """Delete what waits in ``rows``, whose time was over at ``moments``; return how many events that made.

    Parameters are those of ``kernels.tracking.noise.fire_memberships``. Raises nothing.
    """
    n_events = 0
    for j in range(rows.size):
        n_events = _delete_due(tracked, options, rows[j], moments[j], events, values, n_events)
        note_change(tracked, options, rows[j])
    return n_events


@njit(cache=True, forceinline=True)
def _delete_due(
    tracked: Table, options: Records, row: int, due: int, events: Records, values: Float64s, n_events: int
) -> int:
    end_pending(tracked, row)
    tracked.counts[ACCESSES] += _DELETE
    pattern = options[tracked.rows[row].query].pattern
    if pattern in (IN_THEN_OUT, OUT_THEN_IN):
        return n_events
    write_pending(tracked, row, 0, due, events, values, n_events)
    events[n_events].began = tracked.rows[row].begin
    return n_events + 1
