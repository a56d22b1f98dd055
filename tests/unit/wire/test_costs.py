"""What a definition may cost: each limit is met exactly, has a number and an option, and is looked at first."""

from typing import Any

import pytest

from bmq.errors import ControlError
from bmq.records import Feed, Installation, Limits
from bmq.wire.control import validate_definition

FEEDS = {
    "plane": Feed("plane", "plane", "id", ("x", "y"), "ts", attributes=("kind",)),
    "left": Feed("left", "left", "id", ("x",), "ts", join=True),
    "right": Feed("right", "right", "id", ("x",), "ts", join=True),
}
LIMITS = Limits(vertices=8, rings=2, streams=3, where_values=4, conjunctions=2, window_readings=5)
INSTALLATION = Installation(FEEDS, limits=LIMITS)
SQUARE = [[0, 0], [9, 0], [9, 9], [0, 9]]
HOLE = [[1, 1], [2, 1], [2, 2], [1, 2]]
FAR = [[20, 20], [29, 20], [29, 29], [20, 29]]


def border(**options: Any) -> dict[str, Any]:
    return {"kind": "border", "feed": "plane", "region": {"box": {"x": [0, 10]}}, **options}


def multi(*parts: list[Any]) -> dict[str, Any]:
    return {"geojson": {"type": "MultiPolygon", "coordinates": [list(part) for part in parts]}}


def window(size: int) -> dict[str, Any]:
    sides = {side: {"feed": side, "window": size if side == "right" else "1s"} for side in ("left", "right")}
    return {"kind": "window_join", **sides, "any": [{"left.x": [0, 1]}]}


def select(n: int) -> dict[str, Any]:
    return {"kind": "select", "feed": "plane", "any": [{"x": [i, i + 1]} for i in range(n)]}


ALLOWED = [
    border(region={"polygon": [[i, i * i] for i in range(8)]}),
    border(region={"geojson": {"type": "Feature", "geometry": {"type": "Polygon", "coordinates": [SQUARE, HOLE]}}}),
    border(region=multi([SQUARE], [FAR])),
    border(streams=["a", "b", "c"]),
    border(where={"kind": [1, 2, 3, 4]}),
    select(2),
    window(5),
]
BEYOND = [
    (border(region={"polygon": [[i, i * i] for i in range(9)]}), "9 vertices", "vertices"),
    (border(exit_region={"polygon": [[i, i * i] for i in range(9)]}), "9 vertices", "vertices"),
    (border(region=multi([SQUARE], [FAR], [[[0, 50]]])), "9 vertices", "vertices"),
    (border(region=multi([SQUARE, []], [FAR])), "3 rings", "rings"),
    # A member that GeoJSON does not know here says nothing of the size.
    (
        border(region={"geojson": {**multi([SQUARE], [FAR], [HOLE])["geojson"], "geometry": None}}),
        "12 vert",
        "vertices",
    ),
    (border(streams=list("abcd")), "4 streams", "streams"),
    (border(where={"kind": [1, 2, 3, 4, 5]}), "5 values", "where_values"),
    (select(3), "3 conjunctions", "conjunctions"),
    (window(6), "6 readings", "window_readings"),
]


@pytest.mark.parametrize("definition", ALLOWED)
def test_what_meets_a_limit_is_accepted(definition: dict[str, Any]) -> None:
    validate_definition("q", definition, INSTALLATION)


@pytest.mark.parametrize(("definition", "number", "option"), BEYOND)
def test_what_is_beyond_a_limit_is_refused_with_number_and_option(
    definition: dict[str, Any], number: str, option: str
) -> None:
    with pytest.raises(ControlError) as refusal:
        validate_definition("q", definition, INSTALLATION)

    assert refusal.value.code == "over_limit"
    assert number in str(refusal.value)
    assert f"at most {getattr(LIMITS, option)} " in str(refusal.value)
    assert f"limits.{option} " in str(refusal.value)


@pytest.mark.parametrize("wrong", [None, 1, "a", [], {}, [[]], [{}], {"a": None}, [[[1]]]])
@pytest.mark.parametrize("field", ["region", "exit_region", "streams", "where", "any", "left"])
def test_wrong_types_are_no_matter_of_costs(field: str, wrong: Any) -> None:
    for value in (wrong, {"polygon": wrong}, {"geojson": wrong}, {"geojson": {"geometry": wrong}}, {"window": wrong}):
        with pytest.raises(ControlError) as refusal:
            validate_definition("q", {"kind": "border", field: value}, INSTALLATION)
        assert refusal.value.code != "over_limit"


def test_costs_come_before_the_rules_for_shapes() -> None:
    crossed = [[[i, i], [-i, i], [-i, -i], [i, -i]] for i in range(5_000, 0, -1)]  # to refuse them takes seconds
    definition = border(region={"geojson": {"type": "Polygon", "coordinates": crossed}})

    with pytest.raises(ControlError, match="20000 vertices") as refusal:
        validate_definition("q", definition, Installation(FEEDS))

    assert refusal.value.code == "over_limit"
