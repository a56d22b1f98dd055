"""Random programs with rescales and upgrades in between against the definition: they change no event.

As `test_service_machine` and `test_join_machine`, but each batch may find the state divided into other shards, or its
feeds with one more attribute.
"""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from tests.oracle import Oracle, broken_ledgers
from tests.programs import (
    FEEDS,
    JOIN_FEEDS,
    JOIN_SERVED,
    SERVED,
    Batch,
    as_event,
    dead_of,
    lines_of,
    run,
    tell,
    what_differs,
)
from tests.pure_service import PureService
from tests.strategies import cut_smaller, join_programs_in_order, join_worlds, programs, programs_in_order

# Fewer than in `test_service_machine`: a rescale makes the monitors of all shards anew, which takes most of the time.
N_EXAMPLES = settings().max_examples
N_NIGHTLY = 20_000

pytestmark = [pytest.mark.property, pytest.mark.timeout(1_200 if N_EXAMPLES < N_NIGHTLY else 12 * 3_600)]

n_shards = st.sampled_from([1, 2, 3, 5])


@st.composite
def rescaled(draw: st.DrawFn, some: st.SearchStrategy[list[Batch]]) -> list[Batch]:
    """Draw a program in which most batches come after a rescale or upgrade, or else after the restart they had."""
    return [
        replace(batch, restart=draw(n_shards | st.just("upgrade")))
        if draw(st.sampled_from([True, True, False]))
        else batch
        for batch in draw(some)
    ]


def without_restarts(program: Sequence[Batch]) -> list[Batch]:
    return [replace(batch, restart=None) for batch in program]


@settings(max_examples=min(N_EXAMPLES, N_NIGHTLY))
@given(program=rescaled(programs()), n_shards=n_shards, silent_tombstones_before=st.integers(0, 2))
def test_a_rescaled_service_says_what_the_definition_says(
    program: list[Batch], n_shards: int, silent_tombstones_before: int
) -> None:
    note(lines_of(program))
    oracle = Oracle(FEEDS, silent_tombstones_before)
    service = PureService(SERVED, n_shards, silent_tombstones_before)

    tell(oracle, program)
    run(service, program)

    assert not what_differs(service, oracle)
    assert service.n_late == oracle.late.total()
    assert sorted(service.dead) == dead_of(program)
    # Queries with `max_events` may fall silent between a + and its -.
    if "max_events" not in lines_of(program):
        assert broken_ledgers([as_event(message) for message in service.events]) == []
    assert len({message["event_id"] for message in service.events}) == len(service.events)


@settings(max_examples=min(N_EXAMPLES, N_NIGHTLY))
@given(program=rescaled(programs(join_worlds)), n_shards=n_shards, silent_tombstones_before=st.integers(0, 2))
def test_a_rescaled_service_says_of_joins_what_the_definition_says(
    program: list[Batch], n_shards: int, silent_tombstones_before: int
) -> None:
    note(lines_of(program))
    oracle = Oracle(JOIN_FEEDS, silent_tombstones_before)
    service = PureService(JOIN_SERVED, n_shards, silent_tombstones_before)

    tell(oracle, program)
    run(service, program)

    assert not what_differs(service, oracle)
    assert service.n_late == oracle.late.total()
    assert len({message["event_id"] for message in service.events}) == len(service.events)


@settings(max_examples=max(10, N_EXAMPLES // 4))
@given(data=st.data(), program=programs_in_order(), n_shards=n_shards)
def test_a_rescaled_service_emits_the_same_event_ids(data: st.DataObject, program: list[Batch], n_shards: int) -> None:
    smaller = data.draw(rescaled(cut_smaller(program)))
    note(lines_of(smaller))
    as_it_was, service = PureService(SERVED, n_shards), PureService(SERVED, n_shards)

    run(as_it_was, without_restarts(smaller))
    run(service, smaller)

    assert all_of(service, smaller) == all_of(as_it_was, smaller)


@settings(max_examples=max(10, N_EXAMPLES // 4))
@given(data=st.data(), program=join_programs_in_order(), n_shards=n_shards)
def test_a_rescaled_service_emits_the_same_event_ids_of_joins(
    data: st.DataObject, program: list[Batch], n_shards: int
) -> None:
    smaller = data.draw(rescaled(cut_smaller(program)))
    note(lines_of(smaller))
    as_it_was, service = PureService(JOIN_SERVED, n_shards), PureService(JOIN_SERVED, n_shards)

    run(as_it_was, without_restarts(smaller))
    run(service, smaller)

    assert all_of(service, smaller) == all_of(as_it_was, smaller)


def all_of(service: PureService, program: Sequence[Batch]) -> tuple[list[str], list[str], int]:
    """Return all events with their ids, sorted, because the order between streams is free; replies; late readings.

    If the program has an upgrade, without the messages of errors: they name the attributes that a feed has.
    """
    replies = service.replies
    if any(batch.restart == "upgrade" for batch in program):
        replies = [reply | {"error": reply["error"]["code"]} if "error" in reply else reply for reply in replies]
    return sorted(map(repr, service.events)), list(map(repr, replies)), service.n_late
