"""The scenarios against the monitor alone; tests/kafka/test_conformance.py has them through Kafka."""

from pathlib import Path

import pytest

from tests.conformance.play import play
from tests.conformance.pure_backend import PureBackend
from tests.conformance.scenario import Scenario, load

FOLDER = Path(__file__).parents[1] / "scenarios"
GIVEN = load(FOLDER / "given.jsonl")
NOT_YET = set((FOLDER / "not_yet.txt").read_text(encoding="utf-8").splitlines())
MORE = load(FOLDER / "more.jsonl")
WRONG = load(FOLDER / "wrong.jsonl")
BUILT = [one for one in GIVEN if one.name not in NOT_YET] + MORE

pytestmark = pytest.mark.unit


def differences(scenario: Scenario) -> tuple[str, ...]:
    (outcome,) = play([scenario], PureBackend([scenario]))
    return outcome.differences


@pytest.mark.parametrize("scenario", [pytest.param(one, id=one.name) for one in BUILT])
def test_the_scenario_is_met(scenario: Scenario) -> None:
    assert differences(scenario) == ()


def test_exactly_the_scenarios_of_later_versions_are_not_met_yet() -> None:
    outcomes = play(GIVEN, PureBackend(GIVEN))

    assert {outcome.scenario.name for outcome in outcomes if not outcome.passed} == NOT_YET


@pytest.mark.parametrize("scenario", [pytest.param(one, id=one.name) for one in WRONG])
def test_a_wrong_expectation_fails(scenario: Scenario) -> None:
    assert differences(scenario) != ()
