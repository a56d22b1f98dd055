"""The library against the definition, and against the service: the same events for the same input.

The programs are those of `test_service_machine` and `test_join_machine`, played to a `bmq.Monitor` as tables.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

import bmq
from bmq.records import Feed as ServedFeed
from tests.examples import times
from tests.library import FORMS, feeds_of, for_tables, messages_of, play
from tests.oracle import Answer, Feed, Oracle
from tests.programs import (
    FEEDS,
    JOIN_FEEDS,
    JOIN_SERVED,
    SERVED,
    Batch,
    as_event,
    as_pair_event,
    by_pair,
    by_query,
    by_stream,
    differences,
    is_of_pair,
    lines_of,
    run,
    tell,
)
from tests.pure_service import PureService
from tests.strategies import join_worlds, programs

pytestmark = [pytest.mark.property, pytest.mark.timeout(1_200)]

forms = st.sampled_from(FORMS)
types = st.fixed_dictionaries({name: st.sampled_from([str, float, bool, list]) for name in ("group", "size")})
Form = Callable[[dict[str, Any]], Any]


@settings(max_examples=times(2))
@given(program=programs(), form=forms, types=types)
def test_the_library_gives_the_events_of_the_definition_and_of_the_service(
    program: Sequence[Batch], form: Form, types: Mapping[str, type]
) -> None:
    compare(for_tables(program, types), FEEDS, SERVED, form)


@settings(max_examples=times(1))
@given(program=programs(join_worlds), form=forms, types=types)
def test_the_library_gives_the_joined_pairs_of_the_definition_and_of_the_service(
    program: Sequence[Batch], form: Form, types: Mapping[str, type]
) -> None:
    compare(for_tables(program, types), JOIN_FEEDS, JOIN_SERVED, form)


def compare(program: Sequence[Batch], feeds: Mapping[str, Feed], served: Mapping[str, ServedFeed], form: Form) -> None:
    """Play a program to the library, the service and the definition; all of them must say the same."""
    note(lines_of(program))
    monitor = bmq.Monitor(*feeds_of(feeds))
    oracle, service = Oracle(feeds), PureService(served, 1)

    answers = play(monitor, program, feeds, form)
    tell(oracle, program)
    run(service, program)

    messages = messages_of(monitor.events(), feeds)
    assert in_order(messages) == in_order(service.events)
    pairs = [as_pair_event(message) for message in messages if is_of_pair(message)]
    others = [as_event(message) for message in messages if not is_of_pair(message)]
    assert not differences(by_pair(pairs), by_pair(oracle.pair_events))
    assert not differences(by_stream(others), by_stream(oracle.events))
    expected = [Answer(-1, one.query_id, one.status) if one.status == "expired" else one for one in oracle.answers]
    assert not differences(by_query(answers), by_query(expected))
    assert monitor.counts.late == service.n_late == oracle.late.total()
    assert monitor.counts.suppressed == service.n_suppressed
    assert monitor.counts.events == len(messages)


def in_order(messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return messages by event id: the order of streams among each other is free."""
    return sorted(messages, key=lambda message: str(message["event_id"]))
