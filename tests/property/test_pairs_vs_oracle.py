"""Tracked pairs against the rules in plain Python: any cut of the items, any edits between, any replica."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bmq.engines.tracking import trackings as engine
from bmq.engines.tracking.trackings import TrackingEvents, TrackingItems, Trackings
from bmq.kernels.tables.hashing import hash_ids
from bmq.records import NEVER, Ids, Int32s, Kind, Pattern, Reason, Region, RegionQuery, Sign

pytestmark = pytest.mark.property

N_QUERIES, N_STREAMS = 2, 2  # few, so that a pair has a long story
REGION = Region((0.0,), (1.0,))
durations = st.sampled_from([0, 0, 1, 2, 5])


class Item(NamedTuple):
    query: int
    stream: int
    moment: int
    class_: int
    action: int
    reason: int
    event_time: int
    ordinal: int
    row: int
    pass_: int
    value: float


class Event(NamedTuple):
    query: int
    stream: int
    moment: int
    class_: int
    sign: int
    reason: int
    event_time: int
    ordinal: int
    confirmed_time: int | None
    began: int | None
    row: int
    pass_: int
    value: float


# -- the definition -----------------------------------------------------------------------------------------


@dataclass
class Pair:
    inside: bool = False
    told: str = "no"
    waits: tuple[str, Item] | None = None
    last_entered: int | None = None
    n_events: int = 0


@dataclass
class Rules:
    """The rules of docs/semantics.md for pairs, one pair at a time, nothing ever forgotten."""

    queries: dict[int, RegionQuery] = field(default_factory=dict)
    pairs: dict[tuple[int, int], Pair] = field(default_factory=dict)
    n_suppressed: int = 0

    def set_options(self, query: int, options: RegionQuery, last_time: int = NEVER) -> None:
        """``last_time``: of all streams; NEVER: they were not seen."""
        before = self.queries.get(query, options)
        self.queries[query] = options
        for pair in self.of(query).values():
            was_over = pair.last_entered is not None and pair.last_entered + before.cooldown_ms < last_time
            is_new = not (before.cooldown_ms and options.cooldown_ms)
            if is_new or (options.cooldown_ms != before.cooldown_ms and was_over):
                pair.last_entered = None
            if options.max_events is None or before.max_events is None:
                pair.n_events = 0

    def of(self, query: int) -> dict[int, Pair]:
        return {stream: pair for (q, stream), pair in self.pairs.items() if q == query}

    def forget(self, query: int) -> None:
        self.pairs = {key: pair for key, pair in self.pairs.items() if key[0] != query}

    def run(self, items: list[Item], settled: int) -> list[Event]:
        events: list[Event] = []
        for item in sorted(items, key=lambda item: (item.moment, item.class_)):
            key = (item.query, item.stream)
            self._fire(key, partial(self._comes_first, item=item), events)
            machine = self._cross if self.queries[item.query].pattern is None else self._transit
            machine(self.pairs.setdefault(key, Pair()), item, events)
        for key in self.pairs:
            self._fire(key, lambda due: due < settled, events)
        return events

    def flush(self, query: int) -> list[Event]:
        events: list[Event] = []
        for stream, pair in self.of(query).items():
            if pair.waits:
                self._confirm(self.queries[query], pair, (query, stream), pair.waits[1].event_time, events)
        return events

    @staticmethod
    def _comes_first(due: int, item: Item) -> bool:
        return due < item.moment or (due == item.moment and item.class_ != engine.AT_READING)

    def _fire(self, key: tuple[int, int], is_due: Callable[[int], bool], events: list[Event]) -> None:
        query, pair = self.queries[key[0]], self.pairs.get(key)
        if pair is None or pair.waits is None:
            return
        side, crossing = pair.waits
        if query.pattern is not None:
            due = crossing.event_time + query.within_ms
            if is_due(due):
                pair.waits = None
                if query.pattern in (Pattern.IN_NOT_OUT, Pattern.OUT_NOT_IN):
                    events.append(_waited(key, crossing, due, Sign.NONE, due, None, crossing.event_time))
            return
        due = crossing.event_time + (query.stay_for_ms if side == "in" else query.away_for_ms)
        if is_due(due):
            self._confirm(query, pair, key, due, events)

    def _confirm(self, query: RegionQuery, pair: Pair, key: tuple[int, int], moment: int, events: list[Event]) -> None:
        assert pair.waits is not None
        (side, crossing), pair.waits = pair.waits, None
        if side == "in" and self._tells_in(query, pair, crossing.event_time):
            events.append(_waited(key, crossing, moment, Sign.ENTERED, crossing.event_time, moment, None))
        if side == "out" and self._tells_out(query, pair):
            events.append(_waited(key, crossing, moment, Sign.LEFT, crossing.event_time, moment, None))

    def _cross(self, pair: Pair, item: Item, events: list[Event]) -> None:
        query = self.queries[item.query]
        side = pair.waits and pair.waits[0]
        if item.action == engine.IN:
            pair.inside = True
            if side == "out":
                pair.waits = None
            elif pair.told == "no" and side is None:
                if query.stay_for_ms:
                    pair.waits = ("in", item)
                elif self._tells_in(query, pair, item.event_time):
                    events.append(_at_once(item, Sign.ENTERED, None))
        elif item.action == engine.END:
            pair.inside, pair.waits = False, None
            last = pair.last_entered
            if item.class_ == engine.AT_STREAM_EXPIRY and last is not None and last + query.cooldown_ms < item.moment:
                pair.last_entered = None
            if self._tells_out(query, pair):
                events.append(_at_once(item, Sign.LEFT, None))
        elif pair.inside:
            pair.inside = False
            if side == "in":
                pair.waits = None
            elif pair.told != "no":
                if query.away_for_ms:
                    pair.waits = ("out", item)
                elif self._tells_out(query, pair):
                    events.append(_at_once(item, Sign.LEFT, None))

    def _transit(self, pair: Pair, item: Item, events: list[Event]) -> None:
        pattern = self.queries[item.query].pattern
        opens = engine.IN if pattern in (Pattern.IN_THEN_OUT, Pattern.IN_NOT_OUT) else engine.OUT
        if item.action == opens:
            pair.waits = ("in" if opens == engine.IN else "out", item)
        elif pair.waits:
            if item.action != engine.END and pattern in (Pattern.IN_THEN_OUT, Pattern.OUT_THEN_IN):
                events.append(_at_once(item, Sign.NONE, pair.waits[1].event_time))
            pair.waits = None

    def _tells_in(self, query: RegionQuery, pair: Pair, event_time: int) -> bool:
        last = pair.last_entered
        if query.cooldown_ms and last is not None and event_time <= last + query.cooldown_ms:
            pair.told = "silent"
            self.n_suppressed += 1
            return False
        if not self._counts(query, pair):
            pair.told = "silent"
            return False
        pair.told = "loud"
        if query.cooldown_ms:
            pair.last_entered = event_time
        return True

    def _tells_out(self, query: RegionQuery, pair: Pair) -> bool:
        told, pair.told = pair.told, "no"
        return told == "loud" and self._counts(query, pair)

    def _counts(self, query: RegionQuery, pair: Pair) -> bool:
        if query.max_events is None:
            return True
        if pair.n_events >= query.max_events:
            self.n_suppressed += 1
            return False
        pair.n_events += 1
        return True


def _at_once(item: Item, sign: Sign, began: int | None) -> Event:
    return Event(*item[:4], sign, *item[5:8], None, began, *item[8:])


def _waited(
    key: tuple[int, int],
    crossing: Item,
    moment: int,
    sign: Sign,
    event_time: int,
    confirmed: int | None,
    began: int | None,
) -> Event:
    crossing_facts = (crossing.reason, event_time, crossing.ordinal)
    return Event(*key, moment, engine.FIRED, sign, *crossing_facts, confirmed, began, -1, 0, crossing.value)


# -- the engine -----------------------------------------------------------------------------------------


def as_items(items: list[Item]) -> TrackingItems:
    dtypes = ("i4", "i4", "i8", "i1", "i1", "i1", "i8", "i4", "i4", "i4")
    columns: list[Any] = [np.array([item[k] for item in items], dtype=dtype) for k, dtype in enumerate(dtypes)]
    columns.append(np.array([[item.value for item in items]]))
    return TrackingItems(*columns)


def as_events(told: TrackingEvents) -> list[Event]:
    columns = (
        told.queries,
        told.streams,
        told.moments,
        told.classes,
        told.signs,
        told.reasons,
        told.event_times,
        told.ordinals,
        told.confirmed_times,
        told.began,
        told.rows,
        told.passes,
        told.values[0],
    )
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return [Event._make(None if fact == NEVER else fact for fact in row) for row in rows]


def by_pair(events: list[Event]) -> list[Event]:
    """Those of a pair stay in their order."""
    return sorted(events, key=lambda event: event[:2])


def ids_of(streams: Int32s) -> Ids:
    encoded = [f"s{stream}".encode() for stream in streams.tolist()]
    starts = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    data = np.frombuffer(b"".join(encoded), dtype=np.uint8)
    return Ids(starts, data, hash_ids(starts, data))


class Shard:
    """Trackings with slots of its own: another shard has others for the same queries and streams."""

    def __init__(self, shift: int) -> None:
        self.shift = shift
        self.trackings = Trackings(1)

    def query_slot(self, query_id: str) -> int:
        return int(query_id[1:]) * 40 + self.shift

    def query_id(self, slot: int) -> str:
        return f"q{(slot - self.shift) // 40}"

    def stream_slots(self, ids: Ids) -> Int32s:
        return np.array([int(ids.text(i)[1:]) * 7 + self.shift for i in range(len(ids))], dtype=np.int32)

    def slotted(self, items: list[Item]) -> TrackingItems:
        return as_items([i._replace(query=i.query * 40 + self.shift, stream=i.stream * 7 + self.shift) for i in items])

    def named(self, told: TrackingEvents) -> list[Event]:
        return [
            event._replace(query=(event.query - self.shift) // 40, stream=(event.stream - self.shift) // 7)
            for event in as_events(told)
        ]

    def ids(self, slots: Int32s) -> Ids:
        return ids_of((slots - self.shift) // 7)

    def rows(self) -> set[tuple[object, ...]]:
        """All that a replica must know."""
        return {
            (
                page.query_ids[page.query_rows[i]],
                page.ids.text(i),
                flags := int(page.flags[i]),
                # Of a pair that waits for nothing the crossing means nothing.
                *((page.reasons[i], page.ordinals[i], page.begins[i], page.values[0, i]) if flags & 24 else ()),
                page.last_entered[i],
                page.n_events[i],
            )
            for page in self.trackings.snapshot(self.query_id, self.ids, 2)
            for i in range(len(page.ids))
        }

    def copy(self, shift: int, queries: dict[int, RegionQuery]) -> "Shard":
        other = Shard(shift)
        for query, options in queries.items():
            other.trackings.set_options(other.query_slot(f"q{query}"), options)
        for page in self.trackings.snapshot(self.query_id, self.ids, 2):
            other.trackings.put_rows(page, other.query_slot, other.stream_slots)
        return other


# -- inputs -------------------------------------------------------------------------------------------------


@st.composite
def queries(draw: st.DrawFn) -> RegionQuery:
    pattern = draw(st.sampled_from([None, None, *Pattern]))
    if pattern:
        return RegionQuery("q", 1, "f", REGION, kind=Kind.TRANSITION, pattern=pattern, within_ms=draw(durations))
    return RegionQuery(
        "q",
        1,
        "f",
        REGION,
        stay_for_ms=draw(durations),
        away_for_ms=draw(durations),
        cooldown_ms=draw(st.sampled_from([0, 1, 3, 5])),
        max_events=draw(st.sampled_from([None, None, 1, 3])),
    )


@st.composite
def item_lists(draw: st.DrawFn, registered: dict[int, RegionQuery], begin: int) -> list[Item]:
    """Items from ``begin`` on, in order."""
    facts = draw(
        st.lists(
            st.tuples(
                st.sampled_from(sorted(registered)),
                st.integers(0, N_STREAMS - 1),
                st.integers(begin, begin + 8),
                st.sampled_from([engine.IN, engine.OUT] * 2 + [engine.END]),
                st.integers(0, 2),
                st.integers(-3, 3).map(float),
            ),
            min_size=5,
            max_size=20,
        )
    )
    items = []
    for number, (query, stream, moment, action, offset, value) in enumerate(facts):
        # Only an end comes at an expiry, and only passes happen before the reading that shows them.
        class_ = [engine.AT_READING, engine.AT_STREAM_EXPIRY, engine.AT_QUERY_EXPIRY][offset if action == 0 else 0]
        options = registered[query]
        passes = options.pattern is None and not options.stay_for_ms and not options.away_for_ms and action != 0
        event_time = moment - offset if passes else moment
        reason = Reason.STREAM_EXPIRED if class_ else Reason.MOVED
        items.append(Item(query, stream, moment, class_, action, reason, event_time, number % 3, number, offset, value))
    return sorted(items, key=lambda item: (item.moment, item.class_))


# -- rules --------------------------------------------------------------------------------------------------


@given(data=st.data(), options=st.lists(queries(), min_size=N_QUERIES, max_size=N_QUERIES))
def test_whatever_the_batches_each_pair_has_the_events_of_the_rules(
    data: st.DataObject, options: list[RegionQuery]
) -> None:
    rules, shard = Rules(), Shard(3)
    for query, chosen in enumerate(options):
        rules.set_options(query, chosen)
        shard.trackings.set_options(shard.query_slot(f"q{query}"), chosen)
    items = data.draw(item_lists(rules.queries, 0), label="items")
    end = data.draw(st.integers(items[-1].moment if items else 0, 30), label="end")
    cuts = sorted(data.draw(st.lists(st.integers(0, len(items)), max_size=5), label="cuts"))
    last_times = np.full(40, NEVER, dtype=np.int64)

    found: list[Event] = []
    n_suppressed, settled = 0, 0
    for begin, stop in zip([0, *cuts], [*cuts, len(items)], strict=True):
        latest = items[stop].moment if stop < len(items) else end
        settled = end if stop == len(items) else data.draw(st.integers(settled, latest), label="settled")
        # What is given in another order is put in order.
        batch = [(i.moment, i.class_) for i in items[begin:stop]]
        order = data.draw(st.permutations(range(stop - begin)), label="order") if len(set(batch)) == len(batch) else []
        given_items = [items[begin + k] for k in order] if order else items[begin:stop]
        for item in given_items:
            slot = item.stream * 7 + shard.shift
            last_times[slot] = max(last_times[slot], item.moment - 2)
        told = shard.trackings.run(shard.slotted(given_items), settled, last_times)
        found += shard.named(told)
        n_suppressed += told.n_suppressed
        if data.draw(st.booleans(), label="take"):
            shard.trackings.take_touched(shard.query_id, shard.ids)
        shard.trackings._check()

    assert by_pair(found) == by_pair(rules.run(items, end))
    assert n_suppressed == rules.n_suppressed


@given(data=st.data())
def test_edits_between_the_batches_do_what_the_rules_say_and_a_replica_knows_it(data: st.DataObject) -> None:
    rules, shard, replica = Rules(), Shard(5), Shard(0)
    commands: list[Callable[[Shard], None]] = []

    def forget(one: Shard, *, query: int) -> None:
        one.trackings.forget(one.query_slot(f"q{query}"))

    def command(do: Callable[[Shard], None]) -> None:
        """Replicas get it again."""
        do(shard)
        commands.append(do)

    clock, last_time = 0, NEVER

    def set_options(query: int, options: RegionQuery) -> None:
        rules.set_options(query, options, last_time)
        last_times = np.full(40, last_time)
        command(lambda one: one.trackings.set_options(one.query_slot(f"q{query}"), options, last_times))

    set_options(0, data.draw(queries(), label="query"))
    for _ in range(data.draw(st.integers(1, 8), label="steps")):
        query = data.draw(st.sampled_from(sorted(rules.queries)), label="query")
        slot, options = shard.query_slot(f"q{query}"), rules.queries[query]
        actions = ["run"] * 4 + ["put", "durations", "told", "flush", "forget", "replica", "become", "restart"]
        match data.draw(st.sampled_from(actions), label="step"):
            case "run":
                items = data.draw(item_lists(rules.queries, clock), label="items")
                clock = data.draw(st.integers(items[-1].moment + 1 if items else clock, clock + 20), label="settled")
                if data.draw(st.booleans(), label="all moved"):
                    last_time = clock
                last_times = np.full(40, last_time)
                told = shard.trackings.run(shard.slotted(items), clock, last_times)
                n_before = rules.n_suppressed
                assert by_pair(shard.named(told)) == by_pair(rules.run(items, clock))
                assert told.n_suppressed == rules.n_suppressed - n_before
            case "put":
                new = data.draw(st.integers(0, N_QUERIES - 1), label="new")
                rules.forget(new)
                command(partial(forget, query=new))
                set_options(new, data.draw(queries(), label="options"))
            case "durations":
                changed = data.draw(queries(), label="options")
                set_options(query, replace(changed, pattern=options.pattern, within_ms=changed.stay_for_ms))
            case "told" if options.pattern is None:
                streams = data.draw(st.lists(st.integers(0, N_STREAMS - 1), unique=True), label="streams")
                code = data.draw(st.sampled_from([engine.EMITTED, engine.SILENT]), label="told")
                for stream in streams:
                    pair = rules.pairs.setdefault((query, stream), Pair())
                    pair.inside, pair.waits, pair.told = True, None, "loud" if code == engine.EMITTED else "silent"
                shard.trackings.set_visits(slot, np.array(streams, dtype=np.int32) * 7 + np.int32(shard.shift), code)
            case "flush" if options.pattern is None:
                assert by_pair(shard.named(shard.trackings.flush(slot))) == by_pair(rules.flush(query))
            case "forget":
                rules.forget(query)
                command(partial(forget, query=query))
            case "replica" | "become" as step:
                for do in commands:
                    do(replica)
                commands.clear()
                taken = shard.trackings.take_touched(shard.query_id, shard.ids)
                replica.trackings.put_rows(taken, replica.query_slot, replica.stream_slots)
                assert replica.rows() == shard.rows()
                assert len(replica.trackings) == len(shard.trackings)
                replica.trackings._check()
                if step == "become":
                    shard, replica = replica, shard
            case "restart":
                shard.trackings.take_touched(shard.query_id, shard.ids)
                shard, replica = shard.copy(1, rules.queries), shard.copy(2, rules.queries)
                commands.clear()

        shard.trackings._check()
        assert shard.trackings.n_pending == sum(pair.waits is not None for pair in rules.pairs.values())
        for query in rules.queries:
            expected = {
                (stream, pair.told, pair.inside)
                for stream, pair in rules.of(query).items()
                if rules.queries[query].pattern is None and (pair.inside or pair.told != "no")
            }
            slots, told_codes, inside = shard.trackings.rows_of(shard.query_slot(f"q{query}"))
            names = {engine.NO: "no", engine.EMITTED: "loud", engine.SILENT: "silent"}
            found = {
                ((slot - shard.shift) // 7, names[code], is_inside)
                for slot, code, is_inside in zip(slots.tolist(), told_codes.tolist(), inside.tolist(), strict=True)
                if is_inside or code != engine.NO
            }
            assert found == expected
