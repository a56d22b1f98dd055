"""Files and folders with the desired state."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bmq.errors import ServiceError
from bmq.zones.desired_state import read_desired
from bmq.zones.yaml_texts import read_yaml, write_yaml

pytestmark = pytest.mark.unit

FORTIES = {"kind": "border", "feed": "stocks", "region": {"box": {"price": [40, 50]}}}
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.sampled_from(
        ["on", "yes", "1e5", "0x1f", "1:30", "2026-01-05", "null", "~", "", "<<", "1_000", "01", ".5", "="]
    ),
    lambda values: st.lists(values) | st.dictionaries(st.text() | st.sampled_from(["on", "1", "true", "<<"]), values),
    max_leaves=6,
)


def test_a_folder_has_one_definition_a_file_or_many(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "forties.json").write_text(json.dumps(FORTIES))
    (tmp_path / "sub/more.yml").write_text(
        "a: &a {kind: border, feed: stocks, region: {box: {price: [1, null]}}}\nb: {<<: *a, stay_for: 30s}\n---\n"
    )
    for other in ("readme.md", ".hidden.json", "sub/.git.yaml"):
        (tmp_path / other).write_text("not: [a definition")

    desired = read_desired(tmp_path)

    one = {"kind": "border", "feed": "stocks", "region": {"box": {"price": [1, None]}}}
    assert {query_id: query.definition for query_id, query in desired.items()} == {
        "forties": FORTIES,
        "a": one,
        "b": one | {"stay_for": "30s"},
    }
    assert desired["b"].file == str(tmp_path / "sub/more.yml")
    assert list(read_desired(tmp_path / "forties.json")) == ["forties"]


def test_the_field_on_of_a_band_join_is_a_text_in_yaml() -> None:
    (read,) = read_yaml("{kind: band_join, on: {left: price, right: price}, since: 2026-01-05, off: yes, n: 1e3}")

    assert read["on"] == {"left": "price", "right": "price"}
    assert (read["since"], read["off"], read["n"]) == ("2026-01-05", "yes", 1000.0)


@given(value=st.dictionaries(st.text(), json_values))
def test_yaml_that_is_written_is_read_as_the_same_value(value: dict[str, Any]) -> None:
    (read,) = read_yaml(write_yaml(value))

    assert json.dumps(read, sort_keys=True) == json.dumps(value, sort_keys=True)


@pytest.mark.parametrize(
    ("name", "text", "part"),
    [
        ("q.json", "{", "is no JSON"),
        ("q.json", "", "it is empty"),
        ("q.json", '{"a": {}, "a": {}}', 'the name "a" stands twice'),
        ("q.yaml", "a: [", "is no YAML"),
        ("q.yaml", "a: {}\na: {}", "the name 'a' stands twice"),
        ("q.yaml", "1: {kind: border}", "the name '1' is no text"),
        ("q.yaml", "? [a]\n: {}", "is no text"),
        ("q.yaml", "a: !!python/object:os.system {}", "is no YAML"),
        ("q.json", "[1]", "is [1], but a file has one definition"),
        ("q.json", '{"a": 3}', 'has 3 as "a"'),
        ("q.txt", "{}", "is neither .json nor .yaml"),
        ("q.json", "[" * 100_000, "nested too deeply"),
        ("q.yaml", "[" * 3_000, "is no YAML"),
    ],
)
def test_a_file_of_another_form_is_refused_by_its_name(tmp_path: Path, name: str, text: str, part: str) -> None:
    (tmp_path / name).write_text(text)

    with pytest.raises(ServiceError) as refusal:
        read_desired(tmp_path / name)
    assert part in str(refusal.value)
    assert name in str(refusal.value)


def test_a_query_in_two_places_is_refused_with_both(tmp_path: Path) -> None:
    (tmp_path / "forties.json").write_text(json.dumps(FORTIES))
    (tmp_path / "many.json").write_text(json.dumps({"forties": FORTIES}))

    with pytest.raises(ServiceError, match=r"'forties' is in .*forties\.json and in .*many\.json"):
        read_desired(tmp_path)
    with pytest.raises(ServiceError, match="There is no file or folder"):
        read_desired(tmp_path / "absent")
