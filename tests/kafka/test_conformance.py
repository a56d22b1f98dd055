"""The scenarios through Kafka against the running service, all in one run; wrong expectations among them."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from bmq.conformance.play import Outcome, play
from bmq.conformance.scenario import load
from tests.conformance.kafka_backend import running_service

FOLDER = Path(__file__).parents[1] / "scenarios"
GIVEN = load(FOLDER / "given.jsonl")
MORE = load(FOLDER / "more.jsonl", letter="m")
WRONG = load(FOLDER / "wrong.jsonl", letter="w")

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(900)]


@dataclass(frozen=True)
class Run:
    """What came of playing all scenarios."""

    outcomes: dict[str, Outcome]
    ledger_faults: list[str]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, bootstrap_servers: str) -> Run:
    scenarios = GIVEN + MORE + WRONG
    folder = tmp_path_factory.mktemp("conformance")
    with running_service(scenarios, folder, bootstrap_servers) as backend:
        outcomes = {outcome.scenario.name: outcome for outcome in play(scenarios, backend)}
        return Run(outcomes, backend.ledger_faults())


@pytest.fixture
def outcomes(run: Run) -> dict[str, Outcome]:
    return run.outcomes


def test_the_ledger_of_all_scenarios_together_is_whole(run: Run) -> None:
    assert run.ledger_faults == []


@pytest.mark.parametrize("name", [one.name for one in GIVEN + MORE])
def test_the_scenario_is_met(name: str, outcomes: dict[str, Outcome]) -> None:
    assert outcomes[name].differences == ()


@pytest.mark.parametrize("name", [one.name for one in WRONG])
def test_a_wrong_expectation_fails(name: str, outcomes: dict[str, Outcome]) -> None:
    assert not outcomes[name].passed
