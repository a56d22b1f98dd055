"""The scenarios through Kafka against the running service, all in one run; wrong expectations among them."""

from pathlib import Path

import pytest

from tests.conformance.kafka_backend import running_service
from tests.conformance.play import Outcome, play
from tests.conformance.scenario import load

FOLDER = Path(__file__).parents[1] / "scenarios"
GIVEN = load(FOLDER / "given.jsonl")
NOT_YET = set((FOLDER / "not_yet.txt").read_text(encoding="utf-8").splitlines())
WRONG = load(FOLDER / "wrong.jsonl", letter="w")

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory, bootstrap_servers: str) -> dict[str, Outcome]:
    scenarios = GIVEN + WRONG
    folder = tmp_path_factory.mktemp("conformance")
    with running_service(scenarios, folder, bootstrap_servers) as backend:
        return {outcome.scenario.name: outcome for outcome in play(scenarios, backend)}


@pytest.mark.parametrize("name", [one.name for one in GIVEN if one.name not in NOT_YET])
def test_the_scenario_is_met(name: str, outcomes: dict[str, Outcome]) -> None:
    assert outcomes[name].differences == ()


def test_exactly_the_scenarios_of_later_versions_are_not_met_yet(outcomes: dict[str, Outcome]) -> None:
    assert {one.name for one in GIVEN if not outcomes[one.name].passed} == NOT_YET


@pytest.mark.parametrize("name", [one.name for one in WRONG])
def test_a_wrong_expectation_fails(name: str, outcomes: dict[str, Outcome]) -> None:
    assert not outcomes[name].passed
