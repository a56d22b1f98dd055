"""When a known name is offered in place of an unknown one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bmq.wire.fault_texts import nearest, suggestion

FIELDS = ["feed", "region", "bounds", "streams", "stream_ttl", "stay_for"]

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("regoin", "region"),
        ("Region", "region"),
        ("regions", "region"),
        ("rgn", ""),
        ("fede", "feed"),
        ("fed", "feed"),
        ("foot", ""),
        ("stream", "streams"),
        ("streamttl", "stream_ttl"),
        ("type", ""),
        ("coordinates", ""),
        ("", ""),
    ],
)
def test_only_a_name_that_is_near_is_offered(name: str, expected: str) -> None:
    assert nearest(name, FIELDS) == expected


def test_of_several_near_names_the_nearest_is_offered() -> None:
    assert nearest("vehicle2", ["vehicle1", "vehicles2", "vehicle22x"]) == "vehicle1"
    assert nearest("lno", ["lan", "lon"]) == "lon"


@given(st.text("abc_", min_size=3, max_size=80), st.integers(0, 79), st.sampled_from("xy"))
def test_a_name_with_one_wrong_character_is_near(name: str, at: int, other: str) -> None:
    at %= len(name)

    assert nearest(name[:at] + other + name[at + 1 :], [name]) == name


def test_where_no_name_is_near_all_are_listed_as_long_as_they_are_few() -> None:
    assert suggestion("y", ["x"]) == "Known here: 'x'."
    assert suggestion("y", []) == "None is known here."
    assert suggestion("regoin", FIELDS) == "Did you mean 'region'?"
    assert suggestion("y", [f"field{n:02}" for n in range(20)]).endswith("'field11' and 8 more.")
