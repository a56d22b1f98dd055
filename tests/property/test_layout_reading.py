"""Random programs under `layout = "reading"`: the same crossings in fewer events, each with an id of its own."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from tests.examples import times
from tests.programs import SERVED, Batch, lines_of, run
from tests.pure_service import PureService
from tests.strategies import cut_smaller, programs, programs_in_order

pytestmark = [pytest.mark.property, pytest.mark.timeout(1_200)]

Event = dict[str, Any]


@settings(max_examples=times(2))
@given(program=programs())
def test_both_layouts_tell_the_same_crossings(program: Sequence[Batch]) -> None:
    note(lines_of(program))
    by_crossing, by_reading = PureService(SERVED, 1), PureService(SERVED, 1, layout="reading")

    run(by_crossing, program)
    run(by_reading, program)

    assert sorted(crossings_of(by_reading.events), key=repr) == sorted(crossings_of(by_crossing.events), key=repr)
    assert no_id_comes_twice(by_reading.events)


@settings(max_examples=times(2))
@given(data=st.data(), program=programs_in_order(), n_shards=st.integers(1, 3))
def test_an_event_of_many_queries_is_the_same_whatever_the_batches_and_shards(
    data: st.DataObject, program: list[Batch], n_shards: int
) -> None:
    smaller = data.draw(cut_smaller(program))
    note(f"{lines_of(program)}\n-- or --\n{lines_of(smaller)}")
    at_once, piecemeal = PureService(SERVED, 1, layout="reading"), PureService(SERVED, n_shards, layout="reading")

    run(at_once, program)
    run(piecemeal, smaller)

    assert sorted(at_once.events, key=by_id) == sorted(piecemeal.events, key=by_id)
    assert no_id_comes_twice(at_once.events)


def crossings_of(events: Iterable[Event]) -> Iterator[tuple[Any, ...]]:
    """Yield what each crossing of the events says that an event of either layout has."""
    for event in events:
        what = [event.get(name) for name in ("reason", "pattern", "began", "pass", "confirmed_time", "previous")]
        about = event["kind"], event["feed"], event["stream_id"], event["event_time"], event["value"], *what
        signs = {"entered": "+", "left": "-"}
        if "query_id" in event:
            yield *about, event["query_id"], event.get("sign")
        else:
            yield from ((*about, query_id, sign) for field, sign in signs.items() for query_id in event[field])


def no_id_comes_twice(events: Sequence[Event]) -> bool:
    return len({event["event_id"] for event in events}) == len(events)


def by_id(event: Event) -> str:
    event_id = event["event_id"]
    assert isinstance(event_id, str)
    return event_id
