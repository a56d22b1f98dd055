"""What `make bench-check` says of a number, and that its bounds can be read."""

import importlib

import pytest
from pydantic import ValidationError

from bench.check import Bound, read_bounds

pytestmark = pytest.mark.unit


def bound(**fields: object) -> Bound:
    return Bound.model_validate({"claim": "c", "measure": "m:f", "noise": 0.1} | fields)


@pytest.mark.parametrize(
    ("fields", "number", "verdict"),
    [
        ({"at_least": 10}, 10.0, "ok"),
        ({"at_least": 10}, 9.0, "ok (noise)"),
        ({"at_least": 10}, 8.9, "FAILED"),
        ({"at_most": 10}, 11.0, "ok (noise)"),
        ({"at_most": 10}, 11.1, "FAILED"),
        ({"at_least": 10, "reached": 6, "reason": "r"}, 12.0, "ok"),
        ({"at_least": 10, "reached": 6, "reason": "r"}, 6.5, "missed"),
        ({"at_least": 10, "reached": 6, "reason": "r"}, 5.4, "missed"),
        ({"at_least": 10, "reached": 6, "reason": "r"}, 5.3, "FAILED"),
    ],
)
def test_a_number_is_shown_by_its_bound_its_noise_and_what_was_reached(
    fields: dict[str, object], number: float, verdict: str
) -> None:
    assert bound(**fields).verdict(number) == verdict


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"at_least": 1, "at_most": 2},
        {"at_least": 10, "reached": 6},
        {"at_least": 10, "reason": "r"},
        {"at_least": 10, "reached": 11, "reason": "r"},
        {"at_least": 10, "atleast": 10},
    ],
    ids=["no bound", "two bounds", "no reason", "nothing reached", "reached after all", "a name that is none"],
)
def test_a_bound_that_says_nothing_or_two_things_is_refused(fields: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        bound(**fields)


@pytest.mark.parametrize("name", read_bounds())
def test_every_claim_names_a_function_that_measures_it(name: str) -> None:
    module, _, function = read_bounds()[name].measure.partition(":")

    assert callable(getattr(importlib.import_module(module), function))
