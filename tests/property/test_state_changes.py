"""Random registered and desired states: the published changes make one of the other, and nothing else."""

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bmq.errors import ServiceError
from bmq.zones.definition_texts import LONGEST_DIFF, canonical_text, diff_lines
from bmq.zones.state_changes import Action, Registered, count_changes, find_changes

pytestmark = pytest.mark.property

# 1, 1.0 and true are equal for Python, and three values for JSON.
ids = st.sampled_from(["a/1", "a/2", "a/3", "b/1", "b/2"])
definitions = st.fixed_dictionaries({"kind": st.just("border"), "n": st.sampled_from([1, 1.0, True, None, "1"])})
statuses = st.sampled_from(["accepted", "unchanged", "degraded", "expired", "rejected", "unanswered"])
registered_states = st.dictionaries(ids, st.builds(Registered, definitions | st.just("no JSON"), statuses))
Desired = dict[str, dict[str, Any]]
State = dict[str, Registered]


def applied(desired: Desired, registered: State, prune_prefix: str | None) -> State:
    """Return the registered state after the service has accepted each change."""
    after = dict(registered)
    for change in find_changes(desired, registered, prune_prefix):
        if change.action is Action.DELETE:
            del after[change.query_id]
        else:
            after[change.query_id] = Registered(change.after, "accepted")
    return after


@given(desired=st.dictionaries(ids, definitions), registered=registered_states)
@example(
    desired={"a/1": {"kind": "border", "n": True}},
    registered={"a/1": Registered({"kind": "border", "n": 1}, "accepted")},
)
def test_without_pruning_the_desired_queries_are_there_and_all_others_stay(desired: Desired, registered: State) -> None:
    after = applied(desired, registered, None)

    assert {query_id: canonical_text(after[query_id].definition) for query_id in desired} == {
        query_id: canonical_text(definition) for query_id, definition in desired.items()
    }
    assert all(after[query_id].status != "rejected" for query_id in desired)
    others = registered.keys() - desired.keys()
    assert after.keys() == desired.keys() | others
    assert all(after[query_id] is registered[query_id] for query_id in others)


@given(
    desired=st.dictionaries(ids.filter(lambda one: one.startswith("a/")), definitions, min_size=1),
    registered=registered_states,
)
def test_pruning_deletes_exactly_the_queries_with_the_prefix_that_are_not_desired(
    desired: Desired, registered: State
) -> None:
    after = applied(desired, registered, "a/")

    assert {query_id for query_id in after if query_id.startswith("a/")} == desired.keys()
    foreign = {query_id: query for query_id, query in registered.items() if not query_id.startswith("a/")}
    assert {query_id: query for query_id, query in after.items() if not query_id.startswith("a/")} == foreign


@given(desired=st.dictionaries(ids, definitions), registered=registered_states)
def test_a_second_time_there_is_nothing_to_do(desired: Desired, registered: State) -> None:
    after = applied(desired, registered, None)

    assert find_changes(desired, after, None) == []
    assert count_changes([], len(desired)) == f"create 0, replace 0, repeat 0, delete 0, keep {len(desired)}"


@pytest.mark.parametrize(
    ("desired", "prefix", "part"),
    [
        ({"a/1": {}}, "", "prefix of --prune is empty"),
        ({}, "a/", "There are no definitions"),
        ({"a/1": {}, "b/1": {}}, "a/", "among them 'b/1'"),
    ],
)
def test_a_prefix_that_would_delete_queries_of_others_is_refused(desired: Desired, prefix: str, part: str) -> None:
    with pytest.raises(ServiceError, match=part):
        find_changes(desired, {"a/2": Registered({}, "accepted")}, prefix)


@given(before=st.none() | definitions, after=st.none() | definitions)
def test_a_diff_has_lines_exactly_if_the_definitions_differ(before: Any, after: Any) -> None:
    lines = diff_lines("q", before, after)

    assert bool(lines) == (canonical_text(before) != canonical_text(after))


def test_a_moved_vertex_is_one_line_of_the_diff() -> None:
    ring = [[k, k * k] for k in range(1_000)]
    before, after = {"region": {"polygon": ring}}, {"region": {"polygon": [*ring[:5], [5, 0], *ring[6:]]}}

    lines = diff_lines("q", before, after)

    assert lines[:2] == ["--- registered/q", "+++ desired/q"]
    assert [line.split() for line in lines[2:] if line[0] in "+-"] == [["-", "[5,", "25]"], ["+", "[5,", "0]"]]
    created = diff_lines("q", None, before)
    assert created[0] == "--- /dev/null"
    assert len(created) == LONGEST_DIFF + 1
    assert created[-1].endswith("more lines of q")
