"""The scenarios against the monitor alone; tests/kafka/test_conformance.py has them through Kafka."""

from pathlib import Path

import pytest

from bmq.conformance.play import play
from bmq.conformance.scenario import Scenario, load
from tests.conformance.pure_backend import PureBackend

FOLDER = Path(__file__).parents[2] / "scenarios"
GIVEN = load(FOLDER / "given.jsonl")
MORE = load(FOLDER / "more.jsonl")
WRONG = load(FOLDER / "wrong.jsonl")

pytestmark = pytest.mark.unit


def differences(scenario: Scenario) -> tuple[str, ...]:
    (outcome,) = play([scenario], PureBackend([scenario]))
    return outcome.differences


@pytest.mark.parametrize("scenario", [pytest.param(one, id=one.name) for one in GIVEN + MORE])
def test_the_scenario_is_met(scenario: Scenario) -> None:
    assert differences(scenario) == ()


def test_the_scenarios_are_met_by_one_service_for_all_of_them() -> None:
    outcomes = play(GIVEN, PureBackend(GIVEN))

    assert [outcome.scenario.name for outcome in outcomes if not outcome.passed] == []


@pytest.mark.parametrize("scenario", [pytest.param(one, id=one.name) for one in WRONG])
def test_a_wrong_expectation_fails(scenario: Scenario) -> None:
    assert differences(scenario) != ()
