"""All joins of one left and one right feed in one shard: it applies commands, batches and restored queries.

    readings of both feeds ─► one sequence ─┬─► channels of band joins ─► pairs that began or ended ─┐
    streams that expire ────►  (by moment)  └─► window joins ──────────► pairs that were found ──────┴─► in order

A feed pair sends no replies and has no clock: `monitor.join_stage` decides when a query is due and how far the settled
time is. The joined pairs of a band join follow from the last readings of both feeds, so no table keeps them.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from bmq.engines.band.band_channels import BandChannels, Changes
from bmq.engines.feed.dues import DueQueries
from bmq.engines.joins.join_feed import JoinFeed
from bmq.engines.joins.join_states import Arrivals, States
from bmq.engines.joins.joined_pair_events import JoinedPairEvents, emit_order, to_pairs
from bmq.engines.joins.past_states import Past
from bmq.engines.stage_result import StageResult
from bmq.engines.window.window_channel import WindowChannel
from bmq.records import NEVER, Int32s, Int64s, JoinedPairs, JoinQuery, Kind, Reason, Sign
from bmq.records.column_records import concat, take


class FeedPair:
    """Joins of two feeds, by query id."""

    def __init__(self, left: JoinFeed, right: JoinFeed) -> None:
        self.left, self.right = left, right
        self.dues = DueQueries()
        self.band = BandChannels(left, right)
        self.windows = WindowChannel(left, right)
        self._slots: dict[str, int] = {}
        self._queries: dict[int, JoinQuery] = {}
        self._free: list[int] = []

    def __len__(self) -> int:
        return len(self._slots)

    def __contains__(self, query_id: str) -> bool:
        return query_id in self._slots

    def query(self, query_id: str) -> JoinQuery:
        """Return a registered query."""
        return self._queries[self._slots[query_id]]

    def queries(self) -> list[JoinQuery]:
        """Return the registered queries, in no order."""
        return list(self._queries.values())

    def due(self, query_id: str) -> int:
        """Return when a query ends, epoch ms; NEVER: it does not end, or the time is not known yet."""
        return self.dues.of(self._slots[query_id])

    def set_due(self, query_id: str, due: int) -> None:
        """Set when a query ends, epoch ms."""
        self.dues.set(self._slots[query_id], due)

    # -- commands -----------------------------------------------------------------------------------------

    def put(self, query: JoinQuery, reason: Reason, due: int) -> JoinedPairs | None:
        """Register or replace a query; return the pairs that this begins and ends; None: no pairs."""
        slot = self._slots.get(query.query_id)
        before = self.band.pairs(slot) if slot is not None else self.band.no_pairs()
        self.restore(query, due, self._since(query))
        slot = self._slots[query.query_id]
        after = self.band.pairs(slot)
        ended, begun = _difference(before, after)
        return self._emit(
            [*self._at_rest(slot, ended, Sign.LEFT, reason), *self._at_rest(slot, begun, Sign.ENTERED, reason)]
        )

    def remove(self, query_id: str, reason: Reason, emitted_as: JoinQuery | None = None) -> JoinedPairs | None:
        """Remove a query; return the pairs that this ends.

        ``emitted_as`` is the definition that the events carry; None: the removed definition.
        """
        slot = self._slots[query_id]
        parts = self._at_rest(slot, self.band.pairs(slot), Sign.LEFT, reason)
        if emitted_as is not None:
            self._queries[slot] = emitted_as
        emitted = self._emit(parts)
        self.drop(query_id)
        return emitted

    def drop(self, query_id: str) -> None:
        """Remove a query without events."""
        slot = self._slots.pop(query_id)
        self.windows.remove(slot)
        self.band.remove(slot)
        self.dues.remove(slot)
        del self._queries[slot]
        self._free.append(slot)

    def restore(self, query: JoinQuery, due: int, since: tuple[int, int]) -> None:
        """Register or replace a query without events.

        ``since`` is the number of the first left and the first right reading that count for a window join.
        """
        slot = self._slots.get(query.query_id)
        if slot is None:
            slot = self._slots[query.query_id] = self._free.pop() if self._free else len(self._queries)
        self._queries[slot] = query
        self.dues.set(slot, due)
        self.band.remove(slot)
        if query.kind is Kind.WINDOW_JOIN:
            self.windows.put(slot, query, since)
        else:
            self.windows.remove(slot)
            if query.enabled:
                self.band.put(slot, query)

    def since_of(self, query_id: str) -> tuple[int, int] | None:
        """Return the numbers of the first left and right reading that count; None: the query is not a window join."""
        return self.windows.since.get(self._slots[query_id])

    def _since(self, query: JoinQuery) -> tuple[int, int]:
        slot = self._slots.get(query.query_id)
        if slot is not None and slot in self.windows.since:
            old = self._queries[slot]
            sides = zip((old.left, old.right), (query.left, query.right), strict=True)
            if all((a.window_ms, a.window_count) == (b.window_ms, b.window_count) for a, b in sides):
                return self.windows.since[slot]
        return self.left.n_applied, self.right.n_applied

    # -- readings and time --------------------------------------------------------------------------------

    def advance(self, left: Arrivals, right: Arrivals, settled: int) -> StageResult:
        """Return the events of a batch that both feeds have applied, and end the queries due before ``settled``."""
        changes = _merge(self.left, self.right, left, right)
        dues = self.dues.passed(settled)
        parts: list[JoinedPairEvents] = []
        visits = 0
        begin = 0
        for due, slot in dues:
            end = int(np.searchsorted(changes.moments, due, side="right"))
            if end > begin:
                found, n = self.band.change(changes, begin, end)
                parts += found
                visits += n
                begin = end
            past = self.band.pairs(slot)
            parts += self._ends(slot, past, due, changes, begin)
            self.band.remove(slot)
        if begin < len(changes):
            found, n = self.band.change(changes, begin, len(changes))
            parts += found
            visits += n
        found, n = self.windows.find(changes, left, right, {slot: due for due, slot in dues})
        emitted = self._emit([*parts, *found])
        expired = [self._queries[slot] for _, slot in dues]
        for query in expired:
            self.drop(query.query_id)
        self.band.forget_texts()
        return StageResult(pairs=[] if emitted is None else [emitted], expired=[*expired], visits=visits + n)

    def _ends(
        self, slot: int, pairs: tuple[Int32s, Int32s], due: int, changes: Changes, begin: int
    ) -> Iterator[JoinedPairEvents]:
        positions = np.full(pairs[0].size, begin - 1, dtype=np.int64)
        states = changes.left.at(pairs[0], positions), changes.right.at(pairs[1], positions)
        # Changes have even positions, so this position is between the change before the due and the change after it.
        yield _events(slot, states, Sign.LEFT, Reason.QUERY_EXPIRED, position=2 * begin - 1, moment=due)

    def _at_rest(
        self, slot: int, pairs: tuple[Int32s, Int32s], sign: Sign, reason: Reason
    ) -> Sequence[JoinedPairEvents]:
        states = self.left.states(pairs[0]), self.right.states(pairs[1])
        return [_events(slot, states, sign, reason, position=0, moment=NEVER)]

    def _emit(self, parts: Sequence[JoinedPairEvents]) -> JoinedPairs | None:
        parts = [part for part in parts if len(part)]
        if not parts:
            return None
        events = concat(parts)
        order = emit_order(events, (self.left, self.right), lambda slot: self._queries[slot].query_id)
        return to_pairs(take(events, order), self.left, self.right, self._queries.__getitem__)

    def _check(self) -> None:
        """State every invariant; for tests."""
        assert sorted([*self._slots.values(), *self._free]) == list(range(len(self._slots) + len(self._free)))
        assert set(self._slots.values()) == set(self._queries)
        self.band._check()


def _events(
    slot: int, states: tuple[States, States], sign: Sign, reason: Reason, *, position: int, moment: int
) -> JoinedPairEvents:
    n = len(states[0])
    return JoinedPairEvents(
        np.full(n, slot, dtype=np.int32),
        np.full(n, position, dtype=np.int64),
        np.full(n, sign, dtype=np.int8),
        np.full(n, reason, dtype=np.int8),
        np.full(n, moment, dtype=np.int64),
        *states,
        np.full(n, -1, dtype=np.int64),
    )


def _difference(
    before: tuple[Int32s, Int32s], after: tuple[Int32s, Int32s]
) -> tuple[tuple[Int32s, Int32s], tuple[Int32s, Int32s]]:
    """Return the pairs that are only in ``before``, and the pairs that are only in ``after``."""
    old, new = (left.astype(np.int64) << 32 | right for left, right in (before, after))
    return _split(np.setdiff1d(old, new, assume_unique=True)), _split(np.setdiff1d(new, old, assume_unique=True))


def _split(keys: Int64s) -> tuple[Int32s, Int32s]:
    return (keys >> 32).astype(np.int32), (keys & 0xFFFFFFFF).astype(np.int32)


def _merge(left_feed: JoinFeed, right_feed: JoinFeed, left: Arrivals, right: Arrivals) -> Changes:
    """Return the readings and the expiries of both feeds as one sequence.

    The sequence is in order of the moments. At one moment, readings come before expiries, and then the feed with the
    smaller name comes first. The readings of one feed are in order already.
    """
    parts = [(0, left), (1, right)]
    if right_feed.feed.name < left_feed.feed.name:
        parts.reverse()
    sides, streams, moments, is_expiry, rows = [], [], [], [], []
    for side, arrivals in parts:
        for expiry, states, times in (
            (False, arrivals.read, arrivals.read.event_times),
            (True, arrivals.expired, arrivals.moments),
        ):
            sides.append(np.full(len(states), side, dtype=np.int8))
            streams.append(states.slots)
            moments.append(times)
            is_expiry.append(np.full(len(states), expiry, dtype=np.bool_))
            rows.append(np.arange(len(states)))
    all_moments, all_expiries = np.concatenate(moments), np.concatenate(is_expiry)
    order = np.lexsort((all_expiries, all_moments))  # stable
    all_sides = np.concatenate(sides)[order]
    all_rows = np.concatenate(rows)[order]
    all_expiries = all_expiries[order]
    pasts = []
    for side, feed, arrivals in ((0, left_feed, left), (1, right_feed, right)):
        positions = np.empty(len(arrivals.read), dtype=np.int64)
        own = np.flatnonzero((all_sides == side) & ~all_expiries)
        positions[all_rows[own]] = own
        pasts.append(Past(feed, arrivals, positions))
    return Changes(
        all_sides, np.concatenate(streams)[order], all_moments[order], all_expiries, all_rows, (left, right), *pasts
    )
