"""Trackings of one feed and shard, for noise options and transition queries.

A tracked query (`RegionQuery.is_tracked`) needs more than the last reading of a stream, so it has a tracking for each
stream that it remembers. This module knows (query, stream) and time, and no regions: `engines.feed` finds the
crossings, and `Trackings` decides which of them become events, and when. The rules are in docs/semantics.md. The state
machines are `kernels.tracking.noise` and `kernels.tracking.tran_seq`.
"""

from collections.abc import Callable, Iterator

import numpy as np

from bmq.engines.tracking.tracking_items import TrackingEvents as TrackingEvents
from bmq.engines.tracking.tracking_items import TrackingItems as TrackingItems
from bmq.engines.tracking.tracking_items import as_columns, as_events, room
from bmq.engines.tracking.tracking_table import TrackingTable
from bmq.kernels.tracking import pending as pending_kernel
from bmq.kernels.tracking import tracking_rows as rows_kernel
from bmq.kernels.tracking.noise import fire_memberships, run_memberships, set_visits
from bmq.kernels.tracking.tracking_events import AT_QUERY_EXPIRY as AT_QUERY_EXPIRY
from bmq.kernels.tracking.tracking_events import AT_READING as AT_READING
from bmq.kernels.tracking.tracking_events import AT_STREAM_EXPIRY as AT_STREAM_EXPIRY
from bmq.kernels.tracking.tracking_events import END as END
from bmq.kernels.tracking.tracking_events import FIRED as FIRED
from bmq.kernels.tracking.tracking_events import IN as IN
from bmq.kernels.tracking.tracking_events import OUT as OUT
from bmq.kernels.tracking.tracking_rows import EMITTED as EMITTED
from bmq.kernels.tracking.tracking_rows import FAR, Records
from bmq.kernels.tracking.tracking_rows import NO as NO
from bmq.kernels.tracking.tracking_rows import SILENT as SILENT
from bmq.kernels.tracking.tran_seq import fire_transitions, run_transitions
from bmq.records import Bools, Ids, Int8s, Int32s, Int64s, RegionQuery, TrackingRows

INITIAL_QUERIES = 64  # doubles as needed


class Trackings:
    """The rows of all tracked queries. Memory: see `TrackingTable`; 40 bytes a query slot."""

    def __init__(self, n_dims: int) -> None:
        self._n_dims = n_dims
        self._options = _no_options(INITIAL_QUERIES)
        self._memberships = TrackingTable(n_dims, keeps_history=True)
        self._transitions = TrackingTable(n_dims, keeps_history=False)

    def __len__(self) -> int:
        return len(self._memberships) + len(self._transitions)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return self._memberships.nbytes + self._transitions.nbytes + self._options.nbytes

    @property
    def n_pending(self) -> int:
        """The number of pending crossings."""
        return self._memberships.count(rows_kernel.N_PENDING) + self._transitions.count(rows_kernel.N_PENDING)

    @property
    def accesses(self) -> int:
        """Accesses of Tran-Seq so far, as the paper counts them."""
        return self._transitions.count(rows_kernel.ACCESSES)

    def next_due(self, *, has_moved: bool) -> int:
        """Return a time, epoch ms, before which nothing is due. O(1).

        Until the settled time is beyond it, ``run`` has no timer to fire. If the settled time has not moved since the
        last ``run`` and no reading came (``has_moved`` is False), timers that a lag delays are left out.
        """
        return min(table.next_due(has_moved=has_moved) for table in (self._memberships, self._transitions))

    # -- queries ------------------------------------------------------------------------------------------

    def set_options(self, query: int, options: RegionQuery, last_times: Int64s | None = None) -> None:
        """Register a query slot, or change the options of a query whose rows stay.

        A pending crossing keeps its begin, and the new options decide how long it is pending. A changed `cooldown`
        counts from the last +, unless the old cooldown was over already. A changed `max_events` counts from the first
        event. If the query had no such option before, it counts from the next event, because without the option the
        rows of earlier events are not kept.

        ``last_times`` is as in ``run``. If a query becomes a transition query or stops being one, it must have no rows.
        Cost: O(rows of the query).
        """
        while query >= self._options.size:
            self._options = np.concatenate([self._options, _no_options(self._options.size)])
        option = self._options[query]
        rows = self._rows_of(query)
        pattern = 0 if options.pattern is None else int(options.pattern)
        assert not rows.size or (option["pattern"] > 0) == (pattern > 0), (
            f"query slot {query} has rows of the other kind"
        )
        max_events = -1 if options.max_events is None else options.max_events
        cooldown = int(option["cooldown"])
        if cooldown == options.cooldown_ms:
            cooldown = FAR
        elif not (cooldown and options.cooldown_ms):
            cooldown = -1
        is_count_new = bool(option["max_events"] < 0 or max_events < 0)
        option["pattern"] = pattern
        option["stay"] = options.within_ms if pattern else options.stay_for_ms
        option["away"] = options.within_ms if pattern else options.away_for_ms
        option["cooldown"], option["max_events"] = options.cooldown_ms, max_events
        seen = _unseen() if last_times is None else last_times
        pending_kernel.begin_history(self._table_of(query).state, self._options, rows, cooldown, is_count_new, seen)

    def rows_of(self, query: int) -> tuple[Int32s, Int8s, Bools]:
        """Return the streams that the query remembers: slots, visits (NO, EMITTED or SILENT), whether they are inside.

        A visit is NO if the stream is no member, EMITTED if the service emitted its +, and SILENT if it did not.
        """
        table, rows = self._table_of(query), self._rows_of(query)
        flags = table.flags_of(rows)
        rows, flags = rows[flags > 0], flags[flags > 0]
        visits = (flags & rows_kernel.VISIT) >> rows_kernel.VISIT_SHIFT
        streams: Int32s = table.state.rows["stream"][rows]
        return streams, visits.astype(np.int8), flags & rows_kernel.INSIDE > 0

    def rows_of_streams(self, streams: Int32s) -> tuple[Int32s, Int32s]:
        """Return (query slots, stream slots) of all trackings of ``streams``, which has no stream twice.

        Cost: O(trackings of all streams).
        """
        found = []
        for table in (self._memberships, self._transitions):
            records = table.state.rows[table.kept_rows()]
            found.append(records[np.isin(records["stream"], streams)])
        records = np.concatenate(found)
        return np.ascontiguousarray(records["query"]), np.ascontiguousarray(records["stream"])

    def set_visits(self, query: int, streams: Int32s, visits: Int8s | int) -> None:
        """Make streams members without events; ``streams`` has no stream twice.

        Each stream is inside, with the given visit (EMITTED or SILENT) and without a pending crossing.
        """
        assert self._table_of(query) is self._memberships, f"query slot {query} is a transition query: it has no visits"
        queries = np.full(streams.size, query, dtype=np.int32)
        rows = self._memberships.find_or_add(self._options, queries, streams.astype(np.int32))
        codes = np.broadcast_to(visits, streams.size).astype(np.int32)
        set_visits(self._memberships.state, self._options, rows, codes)

    def flush(self, query: int) -> TrackingEvents:
        """Fire the pending crossings of a border query at once; each is confirmed at the moment at which it began."""
        assert self._table_of(query) is self._memberships, (
            f"query slot {query} is a transition query: drop what is pending"
        )
        rows = self._rows_of(query)
        rows = rows[self._memberships.flags_of(rows) & rows_kernel.PENDING > 0]
        n_before = self._n_suppressed()
        events, values = room(rows.size, self._n_dims)
        state = self._memberships.state
        n = fire_memberships(state, self._options, rows, state.rows["begin"][rows], events, values)
        return as_events([(events[:n], values[:n])], self._n_dims, self._n_suppressed() - n_before)

    def forget(self, query: int) -> None:
        """Remove all rows of a query, without events and without noting a change: replicas apply the same command."""
        rows_kernel.remove_all(self._table_of(query).state, self._options, self._rows_of(query))

    # -- time ---------------------------------------------------------------------------------------------

    def run(
        self, items: TrackingItems, settled: int, last_times: Int64s | None = None, lags: Int64s | None = None
    ) -> TrackingEvents:
        """Apply items, fire the pending crossings that are due, and return the events.

        The items of each tracking apply in order of (moment, class, given order). A pending crossing fires between
        them: before an item of a later moment than its due, and after the readings at its due. Then all pending
        crossings fire that are due before the own time of their stream, which is ``settled`` less its lag. If a query
        ends, a pending crossing that is due later than that does not fire.

        Parameters
        ----------
        items : of registered query slots.
        settled : epoch ms
            The settled time with this batch.
        last_times : int64[n_streams], epoch ms
            The last applied reading of each stream slot; its crossings are in ``items`` or were in earlier items. A
            cooldown that ended before that reading is forgotten. This frees the row of a stream that is outside and
            has no pending crossing. None: no cooldown is forgotten.
        lags : int64[n_streams], ms
            The lag of each stream slot. None: no stream has a lag.

        Notes
        -----
        Cost: O(n log n), plus the blocks of rows in which a pending crossing may be due.
        """
        columns = as_columns(items)
        times = _stream_times(settled, last_times, lags)
        order = np.lexsort((columns.classes, columns.moments))
        are_transitions = self._options["pattern"][columns.queries[order]] > 0
        n_before = self._n_suppressed()
        parts = []
        for table, run, fire, chosen in (
            (self._memberships, run_memberships, fire_memberships, order[~are_transitions]),
            (self._transitions, run_transitions, fire_transitions, order[are_transitions]),
        ):
            if chosen.size:
                events, values = room(2 * chosen.size, self._n_dims)
                done, n = 0, 0
                while True:
                    done, n = run(table.state, self._options, times, columns, chosen, done, events, values, n)
                    if done == chosen.size:
                        break
                    table.grow()
                parts.append((events[:n], values[:n]))
            if table.next_due(has_moved=True) < settled:
                rows, dues = pending_kernel.find_due(table.state, self._options, times)
                events, values = room(rows.size, self._n_dims)
                n = fire(table.state, self._options, rows, dues, events, values)
                parts.append((events[:n], values[:n]))
        return as_events(parts, self._n_dims, self._n_suppressed() - n_before)

    # -- state --------------------------------------------------------------------------------------------

    def take_touched(self, query_id_of: Callable[[int], str], ids_of: Callable[[Int32s], Ids]) -> TrackingRows:
        """Return the trackings changed since the last call, as they are now; remove the rows in the default state.

        The caller calls it once a batch. A row in the default state stays in the table until then.
        """
        tables = (self._memberships, self._transitions)
        chosen = [(table, pending_kernel.take_touched(table.state)) for table in tables]
        taken = self._tracking_rows(chosen, query_id_of, ids_of)
        for table, rows in chosen:
            pending_kernel.remove_gone(table.state, self._options, rows)
        return taken

    def snapshot(
        self, query_id_of: Callable[[int], str], ids_of: Callable[[Int32s], Ids], n_rows: int
    ) -> Iterator[TrackingRows]:
        """Yield all trackings in pages of at most ``n_rows``."""
        for table in (self._memberships, self._transitions):
            rows = table.kept_rows()
            for begin in range(0, rows.size, n_rows):
                yield self._tracking_rows([(table, rows[begin : begin + n_rows])], query_id_of, ids_of)

    def put_rows(
        self, rows: TrackingRows, slot_of_query: Callable[[str], int], slots_of_streams: Callable[[Ids], Int32s]
    ) -> None:
        """Set trackings to rows that ``take_touched`` or ``snapshot`` returned; their queries are registered."""
        slots = np.array([slot_of_query(query_id) for query_id in rows.query_ids], dtype=np.int32)
        queries, streams = slots[rows.query_rows], slots_of_streams(rows.ids).astype(np.int32)
        are_transitions = self._options["pattern"][queries] > 0
        for table, chosen in ((self._memberships, ~are_transitions), (self._transitions, are_transitions)):
            if not chosen.any():
                continue
            places = table.find_or_add(self._options, queries[chosen], streams[chosen])
            state = table.state
            state.rows["begin"][places] = rows.begins[chosen]
            state.rows["ordinal"][places] = rows.ordinals[chosen]
            state.rows["reason"][places] = rows.reasons[chosen]
            state.values[places] = rows.values[:, chosen].T
            if state.history.size:
                state.history["last_entered"][places] = rows.last_entered[chosen]
                state.history["n_events"][places] = rows.n_events[chosen]
            pending_kernel.set_flags(state, self._options, places, rows.flags[chosen])

    def _tracking_rows(
        self,
        chosen: list[tuple[TrackingTable, Int32s]],
        query_id_of: Callable[[int], str],
        ids_of: Callable[[Int32s], Ids],
    ) -> TrackingRows:
        records = np.concatenate([table.state.rows[rows] for table, rows in chosen])
        history = np.concatenate([table.history_of(rows) for table, rows in chosen])
        distinct, query_rows = np.unique(records["query"], return_inverse=True)
        return TrackingRows(
            query_ids=tuple(query_id_of(int(slot)) for slot in distinct),
            query_rows=query_rows.astype(np.int32),
            ids=ids_of(np.ascontiguousarray(records["stream"])),
            flags=records["flags"] & ~np.uint8(rows_kernel.TOUCHED),
            reasons=np.ascontiguousarray(records["reason"]),
            ordinals=np.ascontiguousarray(records["ordinal"]),
            begins=np.ascontiguousarray(records["begin"]),
            values=np.ascontiguousarray(np.concatenate([table.state.values[rows] for table, rows in chosen]).T),
            last_entered=np.ascontiguousarray(history["last_entered"]),
            n_events=np.ascontiguousarray(history["n_events"]),
        )

    def _table_of(self, query: int) -> TrackingTable:
        is_transition = query < self._options.size and self._options[query]["pattern"]
        return self._transitions if is_transition else self._memberships

    def _rows_of(self, query: int) -> Int32s:
        if query >= self._options.size:
            return np.empty(0, dtype=np.int32)
        return rows_kernel.rows_of(self._table_of(query).state, self._options, query)

    def _n_suppressed(self) -> int:
        return self._memberships.count(rows_kernel.N_SUPPRESSED)

    def _check(self) -> None:
        """State every invariant of the trackings; for tests."""
        for table, are_transitions in ((self._memberships, False), (self._transitions, True)):
            table._check(self._options)
            # Rows of transition queries are in one table, and rows of all other queries in the other.
            queries = table.state.rows["query"][table.kept_rows()]
            assert ((self._options["pattern"][queries] > 0) == are_transitions).all()


def _unseen() -> Int64s:
    return np.empty(0, dtype=np.int64)


def _stream_times(settled: int, last_times: Int64s | None, lags: Int64s | None) -> pending_kernel.StreamTimes:
    return pending_kernel.StreamTimes(
        settled, _unseen() if lags is None else lags, _unseen() if last_times is None else last_times
    )


def _no_options(n: int) -> Records:
    options = np.zeros(n, dtype=rows_kernel.OPTIONS)
    options["first"] = -1
    return options
