"""Random programs against the definition: every option, any order of input, any batches, shards and restarts.

The tests that matter most. A program is what a service reads: commands, readings (late, equal, bad), clock marks.
`make property-nightly` runs many more of them. A failure prints the program as lines.
"""

from collections.abc import Sequence

import pytest
from hypothesis import example, given, note, settings
from hypothesis import strategies as st

from tests.oracle import Oracle, Reading, broken_ledgers
from tests.programs import (
    FEEDS,
    SERVED,
    Arrival,
    Batch,
    Mark,
    Put,
    as_answer,
    as_event,
    by_query,
    by_stream,
    dead_of,
    differences,
    lines_of,
    run,
    tell,
)
from tests.pure_service import PureService
from tests.strategies import cut_smaller, programs, programs_in_order

# Many times as many as elsewhere, where the profile does not ask for a night of them: this is what they are for.
N_EXAMPLES = settings().max_examples
N_NIGHTLY = 20_000

# A few minutes on an idle core, or a night; a loaded machine may take its time.
pytestmark = [pytest.mark.property, pytest.mark.timeout(1_200 if N_EXAMPLES < N_NIGHTLY else 12 * 3_600)]

n_shards = st.sampled_from([1, 1, 1, 2, 2, 3, 4, 5])


def at(event_time: int, x: float) -> Arrival:
    return Arrival("line", 0, Reading("a", event_time, (x,)))


SILENT = {"kind": "border", "feed": "line", "region": {"box": {"x": [0, 1]}}, "initial": "silent"}
WITH_EXIT_REGION = SILENT | {"exit_region": {"box": {"x": [0, 2]}}}
# A silent member of a query with options stays one of the query without them. Seldom drawn.
SILENT_THROUGH_AN_EDIT = [
    Batch((), (at(10, 0.5),)),
    Batch((Put("q", WITH_EXIT_REGION),), ()),
    Batch((Put("q", SILENT),), (at(11, 0.5),), "snapshot"),
    Batch((), (at(12, 5.0),), "replica"),
]
# Inside while the limit holds, and out when it is raised. Seldom drawn.
LIMITED = {"kind": "border", "feed": "line", "region": {"box": {"x": [0, 1]}}, "max_events": 2}
SILENT_THROUGH_ANOTHER_LIMIT = [
    Batch((Put("q", LIMITED),), (at(10, 0.5), at(11, 5.0), at(12, 0.5))),
    Batch((Put("q", LIMITED | {"max_events": 3}),), (at(13, 5.0), at(14, 0.5)), "snapshot"),
]
# What comes behind the expiry of a stream is older than the end of its cooldown, which was over then. Seldom drawn.
PAUSED = {"kind": "border", "feed": "line", "region": {"box": {"x": [0, 1]}}, "cooldown": "2ms", "stream_ttl": "3ms"}
BEHIND_A_COOLDOWN = [
    Batch((Put("q", PAUSED),), (at(10, 0.5), Mark("line", 20))),
    Batch((), (at(11, 0.5),), "snapshot"),
]


@settings(max_examples=min(8 * N_EXAMPLES, N_NIGHTLY))
@given(program=programs(), n_shards=n_shards, silent_tombstones_before=st.integers(0, 2))
@example(program=SILENT_THROUGH_AN_EDIT, n_shards=1, silent_tombstones_before=0)
@example(program=SILENT_THROUGH_ANOTHER_LIMIT, n_shards=1, silent_tombstones_before=0)
@example(program=BEHIND_A_COOLDOWN, n_shards=1, silent_tombstones_before=0)
def test_the_service_says_what_the_definition_says(
    program: Sequence[Batch], n_shards: int, silent_tombstones_before: int
) -> None:
    note(lines_of(program))
    oracle = Oracle(FEEDS, silent_tombstones_before)
    service = PureService(SERVED, n_shards, silent_tombstones_before)

    tell(oracle, program)
    run(service, program)

    emitted = [as_event(message) for message in service.events]
    assert not differences(by_stream(emitted), by_stream(oracle.events))
    assert not differences(by_query(map(as_answer, service.replies)), by_query(oracle.answers))
    assert service.n_late == oracle.late.total()
    assert sorted(service.dead) == dead_of(program)
    assert broken_ledgers(emitted, _with_max_events(program)) == []
    assert len({message["event_id"] for message in service.events}) == len(emitted)


@settings(max_examples=min(3 * N_EXAMPLES, N_NIGHTLY))
@given(data=st.data(), program=programs_in_order(), one=n_shards, other=n_shards)
def test_batches_shards_and_restarts_change_no_event_of_readings_in_order(
    data: st.DataObject, program: list[Batch], one: int, other: int
) -> None:
    smaller = data.draw(cut_smaller(program))
    note(f"{lines_of(program)}\n-- or --\n{lines_of(smaller)}")
    at_once, piecemeal = PureService(SERVED, one), PureService(SERVED, other)
    oracle = Oracle(FEEDS)

    run(at_once, program)
    run(piecemeal, smaller)
    tell(oracle, program)

    for service in (at_once, piecemeal):
        assert not differences(by_stream(map(as_event, service.events)), by_stream(oracle.events))
        assert not differences(by_query(map(as_answer, service.replies)), by_query(oracle.answers))
    # Event ids too: a replay with other batches must not look like other events.
    ids = [sorted(message["event_id"] for message in service.events) for service in (at_once, piecemeal)]
    assert ids[0] == ids[1]
    assert len(set(ids[0])) == len(ids[0])


@given(data=st.data(), program=programs_in_order())
def test_the_definition_itself_does_not_depend_on_batches(data: st.DataObject, program: list[Batch]) -> None:
    smaller = data.draw(cut_smaller(program))
    note(f"{lines_of(program)}\n-- or --\n{lines_of(smaller)}")
    at_once, piecemeal = Oracle(FEEDS), Oracle(FEEDS)

    tell(at_once, program)
    tell(piecemeal, smaller)

    assert not differences(by_stream(piecemeal.events), by_stream(at_once.events))
    assert not differences(by_query(piecemeal.answers), by_query(at_once.answers))
    assert at_once.late.total() == piecemeal.late.total() == 0


@given(program=programs())
def test_the_ledger_of_the_definition_is_whole(program: list[Batch]) -> None:
    note(lines_of(program))
    oracle = Oracle(FEEDS)

    tell(oracle, program)

    assert broken_ledgers(oracle.events, _with_max_events(program)) == []


def _with_max_events(program: Sequence[Batch]) -> frozenset[str]:
    """Return the queries that may fall silent between a + and its -."""
    puts = [command for batch in program for command in batch.commands if isinstance(command, Put)]
    return frozenset(put.query_id for put in puts if "max_events" in put.definition)
