"""Tran-Seq: the four region transition events, from in- and out-crossings. Arrays in, numbers out.

    in then out      IN opens, OUT within `within` is the event
    in not out       IN opens, OUT within `within` closes it; not closed, it is the event when `within` is over
    out then in, out not in: mirrored

Source: Lee et al., BMQ-Processor, sections 6.2 and 6.4, figure 8. A crossing is *inserted* under its query and stream.
A crossing of the other side *probes* for it. A match *deletes* it, and so does the end of its time.

Departures. (1) A query has one pattern, so only crossings of the side that opens the pattern are inserted: no probe
would ask for crossings of the other side. An RTMQ, which reports all four patterns, is four queries. (2) One hash table
of (query, stream) serves all queries of a feed and shard. (3) The paper finds crossings that are too old at the tail of
a list by arrival. Here `within` differs by query and readings may be out of order, so the order of arrival is not the
order of the ends. Blocks of the table, each with a bound, replace the list (see `tracking_rows`): crossings that came
together are near each other in the table, as in the list. (4) A crossing that is too old is deleted when the own
time of its stream has passed its end, and not when the next crossing arrives: the event of a stay must not depend on
another one.

Knows rows of trackings, patterns and items. It must not know regions, readings or the wire format.
"""

from numba import njit

from bmq.kernels.tracking.pending import StreamTimes, begin_pending, due_of, end_pending, is_due_before, note_change
from bmq.kernels.tracking.tracking_events import END, IN, OUT, Items, write_item, write_pending
from bmq.kernels.tracking.tracking_rows import ACCESSES, PENDING, PENDING_IN, PENDING_OUT, Records, Table, add, find
from bmq.records import Float64s, Int32s, Int64s

IN_THEN_OUT, OUT_THEN_IN, IN_NOT_OUT, OUT_NOT_IN = 1, 2, 3, 4  # as `records.Pattern`

# Accesses as the paper counts them (section 6.4, footnote 2): one for the list and one for the hash table.
_INSERT, _PROBE, _DELETE = 2, 1, 2


@njit(cache=True)
def run_transitions(
    tracked: Table,
    options: Records,
    times: StreamTimes,
    items: Items,
    order: Int64s,
    first: int,
    events: Records,
    values: Float64s,
    n_events: int,
) -> tuple[int, int]:
    """Apply items ``order[first:]`` and write their events; before an item, fire a crossing of its row that is due.

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
        if is_due_before(tracked, options, row, times, items, i):
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
    """Delete the pending crossings of ``rows``, which ended at ``moments``; return how many events were written.

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
    """Delete the pending crossing of ``row``, write the event if its pattern has one, return the new ``n_events``."""
    end_pending(tracked, row)
    tracked.counts[ACCESSES] += _DELETE
    pattern = options[tracked.rows[row].query].pattern
    if pattern in (IN_THEN_OUT, OUT_THEN_IN):
        return n_events
    write_pending(tracked, row, 0, due, events, values, n_events)
    events[n_events].began = tracked.rows[row].begin
    return n_events + 1
