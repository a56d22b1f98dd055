"""Tracked pairs of one feed and shard: noise options and transition queries.

A query that says more than its region does (`RegionQuery.is_tracked`) has a row for each stream that it remembers
something of. Knows pairs and time, no regions: `engines.border` finds the crossings, this says which become events,
and when. The rules are in docs/semantics.md; the machines are `kernels.pairs` and `kernels.tran_seq`.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from bmq.engines.pair_table import PairTable
from bmq.kernels import pair_rows as kernel
from bmq.kernels.pair_events import EVENT
from bmq.kernels.pair_rows import AT_QUERY_EXPIRY as AT_QUERY_EXPIRY
from bmq.kernels.pair_rows import AT_READING as AT_READING
from bmq.kernels.pair_rows import AT_STREAM_EXPIRY as AT_STREAM_EXPIRY
from bmq.kernels.pair_rows import END as END
from bmq.kernels.pair_rows import FIRED as FIRED
from bmq.kernels.pair_rows import IN as IN
from bmq.kernels.pair_rows import LOUD as LOUD
from bmq.kernels.pair_rows import NO as NO
from bmq.kernels.pair_rows import OUT as OUT
from bmq.kernels.pair_rows import SILENT as SILENT
from bmq.kernels.pair_rows import Items, Records
from bmq.kernels.pairs import fire_memberships, run_memberships, set_told
from bmq.kernels.tran_seq import fire_transitions, run_transitions
from bmq.records import Bools, Float64s, Ids, Int8s, Int32s, Int64s, PairRows, RegionQuery

INITIAL_QUERIES = 64  # doubles as needed


@dataclass(frozen=True, slots=True)
class PairItems:
    """What happens to pairs, as columns of n, in any order.

    Attributes
    ----------
    queries, streams : int32[n], slots.
    moments : int64[n], epoch ms at which it happens: the reading's time, or the due of a timer.
    classes : int8[n], order at one moment: AT_READING, AT_STREAM_EXPIRY, AT_QUERY_EXPIRY; then the given order.
    actions : int8[n], IN and OUT, the crossings; END: the membership ends at once, and nothing waits any more.
    reasons : int8[n], `Reason`.
    event_times : int64[n], epoch ms; the moments, but for passes.
    ordinals, rows, passes : int32[n], given back in the event.
    values : float64[d, n], the stream's.
    """

    queries: Int32s
    streams: Int32s
    moments: Int64s
    classes: Int8s
    actions: Int8s
    reasons: Int8s
    event_times: Int64s
    ordinals: Int32s
    rows: Int32s
    passes: Int32s
    values: Float64s


@dataclass(frozen=True, slots=True)
class Told:
    """Events, as columns of n; those of a pair in order, and the pairs in none.

    Attributes
    ----------
    queries, streams : int32[n], slots.
    moments : int64[n], epoch ms at which it is said: that of the item, or when what waited was due.
    classes : int8[n], the item's; FIRED, after AT_READING and before all others, where something waited.
    signs, reasons : int8[n], `Sign` and `Reason`.
    event_times : int64[n], epoch ms.
    ordinals : int32[n].
    confirmed_times : int64[n], epoch ms; NEVER where nothing was waited for.
    began : int64[n], epoch ms at which a transition began; NEVER in border events.
    rows : int32[n], the item's; -1 where something waited.
    passes : int32[n], the item's.
    values : float64[d, n].
    n_suppressed : how many events there would be more without cooldown and max_events.
    """

    queries: Int32s
    streams: Int32s
    moments: Int64s
    classes: Int8s
    signs: Int8s
    reasons: Int8s
    event_times: Int64s
    ordinals: Int32s
    confirmed_times: Int64s
    began: Int64s
    rows: Int32s
    passes: Int32s
    values: Float64s
    n_suppressed: int

    def __len__(self) -> int:
        return self.queries.size


class Pairs:
    """The rows of all tracked queries. Memory: see `PairTable`; 40 bytes a query slot."""

    def __init__(self, n_dims: int) -> None:
        self._n_dims = n_dims
        self._options = _no_options(INITIAL_QUERIES)
        self._memberships = PairTable(n_dims, keeps_history=True)
        self._transitions = PairTable(n_dims, keeps_history=False)

    def __len__(self) -> int:
        return len(self._memberships) + len(self._transitions)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return self._memberships.nbytes + self._transitions.nbytes + self._options.nbytes

    @property
    def n_pending(self) -> int:
        """How many crossings wait."""
        return self._memberships.count(kernel.N_WAITING) + self._transitions.count(kernel.N_WAITING)

    @property
    def accesses(self) -> int:
        """Accesses of Tran-Seq so far, as the paper counts them."""
        return self._transitions.count(kernel.ACCESSES)

    def next_due(self) -> int:
        """Return a time, epoch ms, before which nothing is due: while S is not behind it, ``run`` need not be called.

        Cost: O(1).
        """
        return min(self._memberships.count(kernel.NEXT_DUE), self._transitions.count(kernel.NEXT_DUE))

    # -- queries ------------------------------------------------------------------------------------------

    def set_options(self, query: int, options: RegionQuery) -> None:
        """Register a query slot, or change the options of one whose rows stay.

        What waits keeps its begin and waits as long as the new options say. A changed cooldown counts from the next
        +, and a changed number of events from the next event: what was told before is not kept for all pairs.
        A query that becomes of the other kind has no rows. Cost: O(rows of the query).
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
        is_cooldown_new = bool(option["cooldown"] != options.cooldown_ms)
        is_count_new = bool(option["max_events"] != max_events)
        option["pattern"] = pattern
        option["stay"] = options.within_ms if pattern else options.stay_for_ms
        option["away"] = options.within_ms if pattern else options.away_for_ms
        option["cooldown"], option["max_events"] = options.cooldown_ms, max_events
        kernel.begin_history(self._table_of(query).state, self._options, rows, is_cooldown_new, is_count_new)

    def rows_of(self, query: int) -> tuple[Int32s, Int8s, Bools]:
        """Return the streams that the query remembers: slots, NO, LOUD or SILENT, and whether they are inside."""
        table, rows = self._table_of(query), self._rows_of(query)
        flags = table.flags_of(rows)
        rows, flags = rows[flags > 0], flags[flags > 0]
        told = (flags & kernel.TOLD) >> kernel.TOLD_SHIFT
        streams: Int32s = table.state.rows["stream"][rows]
        return streams, told.astype(np.int8), flags & kernel.INSIDE > 0

    def rows_of_streams(self, streams: Int32s) -> tuple[Int32s, Int32s]:
        """Return (query slots, stream slots) of all pairs of some streams, each given once. O(pairs)."""
        found = []
        for table in (self._memberships, self._transitions):
            records = table.state.rows[table.kept_rows()]
            found.append(records[np.isin(records["stream"], streams)])
        records = np.concatenate(found)
        return np.ascontiguousarray(records["query"]), np.ascontiguousarray(records["stream"])

    def set_told(self, query: int, streams: Int32s, told: Int8s | int) -> None:
        """Let streams (each once) be inside, told as given without a word, and nothing wait."""
        queries = np.full(streams.size, query, dtype=np.int32)
        rows = self._memberships.find_or_add(self._options, queries, streams.astype(np.int32))
        codes = np.broadcast_to(told, streams.size).astype(np.int32)
        set_told(self._memberships.state, self._options, rows, codes)

    def drop_pending(self, query: int) -> None:
        """Drop the crossings of a query that wait, without a word."""
        kernel.drop_waiting(self._table_of(query).state, self._options, self._rows_of(query))

    def flush(self, query: int) -> Told:
        """Tell now what waits in a border query, confirmed when it began."""
        rows = self._rows_of(query)
        rows = rows[self._memberships.flags_of(rows) & kernel.WAITS > 0]
        n_before = self._n_suppressed()
        events, values = _room(rows.size, self._n_dims)
        state = self._memberships.state
        n = fire_memberships(state, self._options, rows, state.rows["begin"][rows], events, values)
        return _told([(events[:n], values[:n])], self._n_dims, self._n_suppressed() - n_before)

    def forget(self, query: int) -> None:
        """Remove all rows of a query without a word, and note no change: replicas do it by the same command."""
        kernel.remove_all(self._table_of(query).state, self._options, self._rows_of(query))

    # -- time ---------------------------------------------------------------------------------------------

    def run(self, items: PairItems, settled: int, last_times: Int64s | None = None) -> Told:
        """Apply items and tell what is due.

        Each pair's items in order of (moment, class, given order), with what waits told in between: before a later
        moment than its due, and at its due after the readings. Then all that was due before ``settled``.

        Parameters
        ----------
        items : of registered query slots.
        settled : epoch ms
            S with this batch.
        last_times : int64[n_streams], epoch ms
            The last applied reading of each stream slot; its crossings are in ``items`` or were in earlier ones. A
            cooldown that ended before it is forgotten, which frees the row of a pair that is outside and waits for
            nothing. None: none is.

        Notes
        -----
        Cost: O(n log n), and the blocks of rows in which something may be due.
        """
        columns = _columns(items)
        seen = np.empty(0, dtype=np.int64) if last_times is None else last_times
        order = np.lexsort((columns.classes, columns.moments))
        are_transitions = self._options["pattern"][columns.queries[order]] > 0
        n_before = self._n_suppressed()
        parts = []
        for table, run, fire, chosen in (
            (self._memberships, run_memberships, fire_memberships, order[~are_transitions]),
            (self._transitions, run_transitions, fire_transitions, order[are_transitions]),
        ):
            if chosen.size:
                events, values = _room(2 * chosen.size, self._n_dims)
                done, n = 0, 0
                while True:
                    done, n = run(table.state, self._options, columns, chosen, done, events, values, n)
                    if done == chosen.size:
                        break
                    table.grow()
                parts.append((events[:n], values[:n]))
            if table.count(kernel.NEXT_DUE) < settled:
                rows, dues = kernel.find_due(table.state, self._options, settled, seen)
                events, values = _room(rows.size, self._n_dims)
                n = fire(table.state, self._options, rows, dues, events, values)
                parts.append((events[:n], values[:n]))
        return _told(parts, self._n_dims, self._n_suppressed() - n_before)

    # -- state --------------------------------------------------------------------------------------------

    def take_touched(self, query_id_of: Callable[[int], str], ids_of: Callable[[Int32s], Ids]) -> PairRows:
        """Return the pairs changed since the last call, as they are now; remove the rows that hold nothing.

        Called once a batch: a row whose pair is gone stays until then.
        """
        tables = (self._memberships, self._transitions)
        chosen = [(table, kernel.take_touched(table.state)) for table in tables]
        taken = self._pair_rows(chosen, query_id_of, ids_of)
        for table, rows in chosen:
            kernel.remove_gone(table.state, self._options, rows)
        return taken

    def snapshot(
        self, query_id_of: Callable[[int], str], ids_of: Callable[[Int32s], Ids], n_rows: int
    ) -> Iterator[PairRows]:
        """Yield all pairs in pages of at most ``n_rows``."""
        for table in (self._memberships, self._transitions):
            rows = table.kept_rows()
            for begin in range(0, rows.size, n_rows):
                yield self._pair_rows([(table, rows[begin : begin + n_rows])], query_id_of, ids_of)

    def put_rows(
        self, rows: PairRows, slot_of_query: Callable[[str], int], slots_of_streams: Callable[[Ids], Int32s]
    ) -> None:
        """Set pairs as another's ``take_touched`` or ``snapshot`` gave them; their queries are registered."""
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
            kernel.set_flags(state, self._options, places, rows.flags[chosen])

    def _pair_rows(
        self,
        chosen: list[tuple[PairTable, Int32s]],
        query_id_of: Callable[[int], str],
        ids_of: Callable[[Int32s], Ids],
    ) -> PairRows:
        records = np.concatenate([table.state.rows[rows] for table, rows in chosen])
        history = np.concatenate([table.history_of(rows) for table, rows in chosen])
        distinct, query_rows = np.unique(records["query"], return_inverse=True)
        return PairRows(
            query_ids=tuple(query_id_of(int(slot)) for slot in distinct),
            query_rows=query_rows.astype(np.int32),
            ids=ids_of(np.ascontiguousarray(records["stream"])),
            flags=records["flags"] & ~np.uint8(kernel.TOUCHED),
            reasons=np.ascontiguousarray(records["reason"]),
            ordinals=np.ascontiguousarray(records["ordinal"]),
            begins=np.ascontiguousarray(records["begin"]),
            values=np.ascontiguousarray(np.concatenate([table.state.values[rows] for table, rows in chosen]).T),
            last_entered=np.ascontiguousarray(history["last_entered"]),
            n_events=np.ascontiguousarray(history["n_events"]),
        )

    def _table_of(self, query: int) -> PairTable:
        is_transition = query < self._options.size and self._options[query]["pattern"]
        return self._transitions if is_transition else self._memberships

    def _rows_of(self, query: int) -> Int32s:
        if query >= self._options.size:
            return np.empty(0, dtype=np.int32)
        return kernel.rows_of(self._table_of(query).state, self._options, query)

    def _n_suppressed(self) -> int:
        return self._memberships.count(kernel.N_SUPPRESSED)

    def _check(self) -> None:
        """State every invariant of the pairs; for tests."""
        for table, are_transitions in ((self._memberships, False), (self._transitions, True)):
            table._check(self._options)
            # A row is in the table of its query's kind.
            queries = table.state.rows["query"][table.kept_rows()]
            assert ((self._options["pattern"][queries] > 0) == are_transitions).all()


def _no_options(n: int) -> Records:
    options = np.zeros(n, dtype=kernel.OPTIONS)
    options["first"] = -1
    return options


def _columns(items: PairItems) -> Items:
    # Kernels are compiled for arrays that are contiguous and writable; for others they would be compiled once more.
    return Items(
        *(
            np.require(getattr(items, name), dtype, ("C_CONTIGUOUS", "WRITEABLE"))
            for name, dtype in zip(Items._fields, _DTYPES, strict=True)
        )
    )


_DTYPES = ("i4", "i4", "i8", "i1", "i1", "i1", "i8", "i4", "i4", "i4", "f8")


def _room(n: int, n_dims: int) -> tuple[Records, Float64s]:
    return np.empty(n, dtype=EVENT), np.empty((n, n_dims))


def _told(parts: list[tuple[Records, Float64s]], n_dims: int, n_suppressed: int) -> Told:
    events, values = parts[0] if len(parts) == 1 else _joined(parts, n_dims)
    columns = {name: np.ascontiguousarray(events[name]) for name in EVENT.names or ()}
    return Told(**columns, values=np.ascontiguousarray(values.T), n_suppressed=n_suppressed)


def _joined(parts: list[tuple[Records, Float64s]], n_dims: int) -> tuple[Records, Float64s]:
    empty_events, empty_values = _room(0, n_dims)
    return (
        np.concatenate([empty_events, *(events for events, _ in parts)]),
        np.concatenate([empty_values, *(values for _, values in parts)]),
    )
