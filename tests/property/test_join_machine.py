"""Random programs with joins against the definition: as `test_service_machine`, with two feeds that a query joins.

The queries of one feed are there too, since an edit may turn one kind into any other.
"""

from collections.abc import Sequence

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from tests.oracle import Oracle, broken_answers, broken_ledgers
from tests.programs import (
    JOIN_FEEDS,
    JOIN_SERVED,
    Batch,
    as_pair_event,
    by_pair,
    by_query,
    by_stream,
    dead_of,
    differences,
    is_of_pair,
    lines_of,
    run,
    tell,
    what_differs,
)
from tests.pure_service import PureService
from tests.strategies import cut_smaller, join_programs_in_order, join_worlds, programs

# As in `test_service_machine`, but fewer: what a join shares with other queries is drawn there.
N_EXAMPLES = settings().max_examples
N_NIGHTLY = 20_000

pytestmark = [pytest.mark.property, pytest.mark.timeout(1_200 if N_EXAMPLES < N_NIGHTLY else 12 * 3_600)]

n_shards = st.sampled_from([1, 1, 1, 2, 2, 3, 4, 5])


@settings(max_examples=min(4 * N_EXAMPLES, N_NIGHTLY))
@given(program=programs(join_worlds), n_shards=n_shards, silent_tombstones_before=st.integers(0, 2))
def test_the_service_says_of_joins_what_the_definition_says(
    program: Sequence[Batch], n_shards: int, silent_tombstones_before: int
) -> None:
    note(lines_of(program))
    oracle = Oracle(JOIN_FEEDS, silent_tombstones_before)
    service = PureService(JOIN_SERVED, n_shards, silent_tombstones_before)

    tell(oracle, program)
    run(service, program)

    assert not what_differs(service, oracle)
    assert service.n_late == oracle.late.total()
    assert sorted(service.dead) == dead_of(program)
    assert broken_answers([as_pair_event(message) for message in service.events if is_of_pair(message)]) == []
    assert len({message["event_id"] for message in service.events}) == len(service.events)


@settings(max_examples=min(2 * N_EXAMPLES, N_NIGHTLY))
@given(data=st.data(), program=join_programs_in_order(), one=n_shards, other=n_shards)
def test_batches_shards_and_restarts_change_no_event_of_readings_in_order(
    data: st.DataObject, program: list[Batch], one: int, other: int
) -> None:
    smaller = data.draw(cut_smaller(program))
    note(f"{lines_of(program)}\n-- or --\n{lines_of(smaller)}")
    at_once, piecemeal = PureService(JOIN_SERVED, one), PureService(JOIN_SERVED, other)
    oracle = Oracle(JOIN_FEEDS)

    run(at_once, program)
    run(piecemeal, smaller)
    tell(oracle, program)

    for service in (at_once, piecemeal):
        assert not what_differs(service, oracle)
    # Event ids too: a replay with other batches must not look like other events.
    ids = [sorted(message["event_id"] for message in service.events) for service in (at_once, piecemeal)]
    assert ids[0] == ids[1]
    assert len(set(ids[0])) == len(ids[0])


@given(program=programs(join_worlds))
def test_events_of_joins_are_the_same_in_both_layouts(program: Sequence[Batch]) -> None:
    note(lines_of(program))
    by_crossing, by_reading = PureService(JOIN_SERVED, 1), PureService(JOIN_SERVED, 1, layout="reading")

    run(by_crossing, program)
    run(by_reading, program)

    one, other = (list(filter(is_of_pair, service.events)) for service in (by_crossing, by_reading))
    assert one == other


@given(data=st.data(), program=join_programs_in_order())
def test_the_definition_itself_does_not_depend_on_batches(data: st.DataObject, program: list[Batch]) -> None:
    smaller = data.draw(cut_smaller(program))
    note(f"{lines_of(program)}\n-- or --\n{lines_of(smaller)}")
    at_once, piecemeal = Oracle(JOIN_FEEDS), Oracle(JOIN_FEEDS)

    tell(at_once, program)
    tell(piecemeal, smaller)

    assert not differences(by_pair(piecemeal.pair_events), by_pair(at_once.pair_events))
    assert not differences(by_stream(piecemeal.events), by_stream(at_once.events))
    assert not differences(by_query(piecemeal.answers), by_query(at_once.answers))
    assert at_once.late.total() == piecemeal.late.total() == 0


@given(program=programs(join_worlds))
def test_the_ledger_of_the_definition_is_whole(program: list[Batch]) -> None:
    note(lines_of(program))
    oracle = Oracle(JOIN_FEEDS)

    tell(oracle, program)

    assert broken_answers(oracle.pair_events) == []
    assert broken_ledgers(oracle.events) == []
