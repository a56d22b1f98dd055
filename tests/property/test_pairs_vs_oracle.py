"""Trackings against the definition: wherever the batches end, whatever edits come between, on any replica."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bmq.engines.tracking import trackings as engine
from bmq.records import NEVER, RegionQuery, Sign
from tests.oracle_queries import Feed, Query, read_query
from tests.oracle_tracking import Cause, Ledger, Standing, Turn
from tests.strategies_tracking import N_QUERIES, N_STREAMS, Item, item_lists, tracked_queries
from tests.tracking_shards import VISITS, Event, Shard

pytestmark = pytest.mark.property

N_SLOTS = 40  # of streams, in all shards
TURNS = {
    engine.AT_READING: Turn.READING,
    engine.AT_STREAM_EXPIRY: Turn.STREAM_EXPIRY,
    engine.AT_QUERY_EXPIRY: Turn.QUERY_EXPIRY,
}
SIGNS = {"+": Sign.ENTERED, "-": Sign.LEFT, "": Sign.NONE}


def by_tracking(events: list[Event]) -> list[Event]:
    """Return the events of each tracking in their order, and the trackings by number."""
    return sorted(events, key=lambda event: event[:2])


# -- the definition -----------------------------------------------------------------------------------------


def as_query(options: RegionQuery) -> Query:
    """Return the same options for `tests.oracle_tracking`."""
    named = {name: getattr(options, f"{name}_ms") for name in ("stay_for", "away_for", "cooldown", "within")}
    definition: dict[str, Any] = {name: f"{ms}ms" for name, ms in named.items()}
    pattern = None if options.pattern is None else options.pattern.name.lower()
    kind = "border" if pattern is None else "transition"
    definition |= {"kind": kind, "feed": "f", "pattern": pattern, "max_events": options.max_events}
    return read_query(1, definition, {"f": Feed(("x",))})


class Definition:
    """`tests.oracle_tracking` for items. Here is no rule: it passes items on, and adds their facts to the events."""

    def __init__(self) -> None:
        self.ledger = Ledger()
        self.standing: dict[int, Standing] = {}
        self.n_events = 0  # of the ledger that were returned
        self.items: list[Item] = []

    @property
    def n_suppressed(self) -> int:
        return self.ledger.suppressed.total()

    @property
    def n_pending(self) -> int:
        trackings = (tracking for standing in self.standing.values() for tracking in standing.trackings.values())
        return sum(tracking.pending is not None for tracking in trackings)

    def set_options(self, query: int, options: RegionQuery, last_time: int | None = None) -> None:
        """``last_time``: of all streams; None: they have no reading."""
        new = as_query(options)
        standing = self.standing.setdefault(query, Standing(str(query), new))
        for tracking in standing.trackings.values():
            tracking.count_on(standing.query, new, last_time)
        standing.query = new

    def set_visit(self, query: int, stream: int, visit: str) -> None:
        tracking = self.standing[query].tracking(str(stream))
        tracking.inside, tracking.pending, tracking.visit = True, None, visit

    def visits(self, query: int) -> set[tuple[int, str, bool]]:
        """Return (stream, visit, whether it is inside) of each tracking of a border query that has any of these."""
        standing = self.standing[query]
        found = {(int(stream), one.visit, one.inside) for stream, one in standing.trackings.items()}
        return set() if standing.query.pattern else {fact for fact in found if fact[1:] != ("no", False)}

    def forget(self, query: int) -> None:
        if query in self.standing:
            self.standing[query].trackings.clear()

    def flush(self, query: int) -> list[Event]:
        for stream in self.standing[query].trackings:
            self.ledger.flush(self.standing[query], stream)
        return self._fired()

    def run(self, items: list[Item], settled: int) -> list[Event]:
        events: list[Event] = []
        for item in sorted(items, key=lambda item: (item.moment, TURNS[item.class_])):
            standing = self.standing[item.query]
            events += self._fire(standing, str(item.stream), (item.moment, TURNS[item.class_]))
            self._apply(standing, item)
            events += self._at_once(item)
        for standing in self.standing.values():
            for stream in standing.trackings:
                events += self._fire(standing, stream, (settled, Turn.READING))
        return events

    def _fire(self, standing: Standing, stream: str, before: tuple[int, Turn]) -> list[Event]:
        due = standing.tracking(stream).due(standing.query)
        if due is not None and (due, Turn.PENDING) < before:
            self.ledger.fire(standing, stream, due)
        return self._fired()

    def _apply(self, standing: Standing, item: Item) -> None:
        # The number of the item comes back with the value of the event.
        value = (item.value, float(len(self.items)))
        cause = Cause(str(item.stream), item.event_time, value, str(item.reason))
        self.items.append(item)
        if item.action == engine.END:
            end = self.ledger.expire if item.class_ == engine.AT_STREAM_EXPIRY else self.ledger.end
            end(standing, cause)
            return
        tracking = standing.tracking(cause.stream)
        if standing.query.pattern is not None:
            tracking.inside = item.action == engine.OUT  # each item of a transition query is a crossing
        if tracking.inside != (item.action == engine.IN):
            self.ledger.cross(standing, cause)

    def _at_once(self, item: Item) -> list[Event]:
        return self._new_events(lambda _: (item.moment, item.class_), lambda one: (one.row, one.pass_))

    def _fired(self) -> list[Event]:
        return self._new_events(lambda moment: (moment, engine.FIRED), lambda _: (-1, 0))

    def _new_events(
        self, when: Callable[[int], tuple[int, int]], where: Callable[[Item], tuple[int, int]]
    ) -> list[Event]:
        """``when``: moment and class, by the time that the ledger says; ``where``: row and pass, by the item."""
        events = []
        for one in self.ledger.events[self.n_events :]:
            item = self.items[int(one.value[1])]
            assert one.reason in ("", str(item.reason))
            moment, class_ = when(one.event_time if one.confirmed_time is None else one.confirmed_time)
            row, pass_ = where(item)
            event = Event(
                query=item.query,
                stream=item.stream,
                moment=moment,
                class_=class_,
                sign=SIGNS[one.sign],
                reason=item.reason,
                event_time=one.event_time,
                ordinal=item.ordinal,
                confirmed_time=one.confirmed_time,
                began=one.began,
                row=row,
                pass_=pass_,
                value=one.value[0],
            )
            events.append(event)
        self.n_events = len(self.ledger.events)
        return events


# -- rules --------------------------------------------------------------------------------------------------


@given(data=st.data(), options=st.lists(tracked_queries(), min_size=N_QUERIES, max_size=N_QUERIES))
def test_whatever_the_batches_each_tracking_has_the_events_of_the_definition(
    data: st.DataObject, options: list[RegionQuery]
) -> None:
    definition, shard = Definition(), Shard(3)
    for query, chosen in enumerate(options):
        definition.set_options(query, chosen)
        shard.trackings.set_options(shard.query_slot(f"q{query}"), chosen)
    items = data.draw(item_lists(dict(enumerate(options)), 0), label="items")
    end = data.draw(st.integers(_settled_least(items), 30), label="end")
    cuts = sorted(data.draw(st.lists(st.integers(0, len(items)), max_size=5), label="cuts"))
    last_times = np.full(N_SLOTS, NEVER, dtype=np.int64)

    found: list[Event] = []
    n_suppressed, settled = 0, 0
    for begin, stop in zip([0, *cuts], [*cuts, len(items)], strict=True):
        least = max(settled, _settled_least(items[begin:stop]))
        latest = max(least, items[stop].moment) if stop < len(items) else end
        settled = end if stop == len(items) else data.draw(st.integers(least, latest), label="settled")
        # The engine sorts items that are given in another order.
        batch = [(i.moment, i.class_) for i in items[begin:stop]]
        order = data.draw(st.permutations(range(stop - begin)), label="order") if len(set(batch)) == len(batch) else []
        given_items = [items[begin + k] for k in order] if order else items[begin:stop]
        for item in given_items:
            slot = item.stream * 7 + shard.shift
            last_times[slot] = max(last_times[slot], item.moment - 2)
        emitted = shard.trackings.run(shard.slotted(given_items), settled, last_times)
        found += shard.named(emitted)
        n_suppressed += emitted.n_suppressed
        if data.draw(st.booleans(), label="take"):
            shard.trackings.take_touched(shard.query_id, shard.ids)
        shard.trackings._check()

    assert by_tracking(found) == by_tracking(definition.run(items, end))
    assert n_suppressed == definition.n_suppressed


def _settled_least(items: list[Item]) -> int:
    """Return the least settled time of a batch: the settled time is beyond the end of each query that ends."""
    ends = [item.moment + 1 for item in items if item.class_ == engine.AT_QUERY_EXPIRY]
    return max([*ends, items[-1].moment if items else 0])


class Edits:
    """A shard, its replica and the definition, step after step."""

    def __init__(self, data: st.DataObject) -> None:
        self.data = data
        self.definition, self.shard, self.replica = Definition(), Shard(5), Shard(0)
        self.options: dict[int, RegionQuery] = {}
        self.commands: list[Callable[[Shard], None]] = []  # that the replica has yet to apply
        self.clock, self.last_time = 0, NEVER

    # -- steps --------------------------------------------------------------------------------------------

    def run(self, _: int) -> None:
        items = self.data.draw(item_lists(self.options, self.clock), label="items")
        earliest = items[-1].moment + 1 if items else self.clock
        self.clock = self.data.draw(st.integers(earliest, self.clock + 20), label="settled")
        if self.data.draw(st.booleans(), label="all moved"):
            self.last_time = self.clock
        n_before = self.definition.n_suppressed
        last_times = np.full(N_SLOTS, self.last_time)
        emitted = self.shard.trackings.run(self.shard.slotted(items), self.clock, last_times)
        assert by_tracking(self.shard.named(emitted)) == by_tracking(self.definition.run(items, self.clock))
        assert emitted.n_suppressed == self.definition.n_suppressed - n_before

    def put(self, _: int) -> None:
        new = self.data.draw(st.integers(0, N_QUERIES - 1), label="new")
        self.forget(new)
        self.set_options(new, self.data.draw(tracked_queries(), label="options"))

    def change_options(self, query: int) -> None:
        changed = self.data.draw(tracked_queries(), label="options")
        pattern = self.options[query].pattern
        self.set_options(query, replace(changed, pattern=pattern, within_ms=changed.stay_for_ms))

    def set_visits(self, query: int) -> None:
        streams = self.data.draw(st.lists(st.integers(0, N_STREAMS - 1), unique=True), label="streams")
        code = self.data.draw(st.sampled_from([engine.EMITTED, engine.SILENT]), label="visit")
        for stream in streams:
            self.definition.set_visit(query, stream, VISITS[code])
        slots = np.array(streams, dtype=np.int32) * 7 + np.int32(self.shard.shift)
        self.shard.trackings.set_visits(self.shard.query_slot(f"q{query}"), slots, code)

    def flush(self, query: int) -> None:
        emitted = self.shard.trackings.flush(self.shard.query_slot(f"q{query}"))
        assert by_tracking(self.shard.named(emitted)) == by_tracking(self.definition.flush(query))

    def forget(self, query: int) -> None:
        self.definition.forget(query)
        self._command(lambda one: one.trackings.forget(one.query_slot(f"q{query}")))

    def update_replica(self, _: int) -> None:
        for do in self.commands:
            do(self.replica)
        self.commands.clear()
        taken = self.shard.trackings.take_touched(self.shard.query_id, self.shard.ids)
        self.replica.trackings.put_rows(taken, self.replica.query_slot, self.replica.stream_slots)
        assert self.replica.rows() == self.shard.rows()
        assert len(self.replica.trackings) == len(self.shard.trackings)
        self.replica.trackings._check()

    def become_replica(self, query: int) -> None:
        self.update_replica(query)
        self.shard, self.replica = self.replica, self.shard

    def restart(self, _: int) -> None:
        self.shard.trackings.take_touched(self.shard.query_id, self.shard.ids)
        self.shard, self.replica = self.shard.copy(1, self.options), self.shard.copy(2, self.options)
        self.commands.clear()

    def set_options(self, query: int, options: RegionQuery) -> None:
        self.options[query] = options
        self.definition.set_options(query, options, None if self.last_time == NEVER else self.last_time)
        last_times = np.full(N_SLOTS, self.last_time)
        self._command(lambda one: one.trackings.set_options(one.query_slot(f"q{query}"), options, last_times))

    def _command(self, do: Callable[[Shard], None]) -> None:
        """Apply a command now; the replica applies it when it is updated."""
        do(self.shard)
        self.commands.append(do)

    def check(self) -> None:
        self.shard.trackings._check()
        assert self.shard.trackings.n_pending == self.definition.n_pending
        for query in self.options:
            assert self.shard.visits(query) == self.definition.visits(query)


@given(data=st.data())
def test_edits_between_the_batches_do_what_the_definition_says_and_a_replica_knows_it(data: st.DataObject) -> None:
    edits = Edits(data)
    edits.set_options(0, data.draw(tracked_queries(), label="query"))
    for_all = [edits.run] * 4 + [edits.put, edits.change_options, edits.forget]
    for_all += [edits.update_replica, edits.become_replica, edits.restart]
    for_border = [*for_all, edits.set_visits, edits.flush]
    for _ in range(data.draw(st.integers(1, 8), label="steps")):
        query = data.draw(st.sampled_from(sorted(edits.options)), label="query")
        step = data.draw(st.sampled_from(for_all if edits.options[query].pattern else for_border), label="step")
        step(query)
        edits.check()
