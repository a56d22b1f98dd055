"""The service on a cluster: executors and workers die, the driver dies, and each event is there once."""

import sys
import tarfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest

from bmq.conformance.scenario import Restart, Scenario, load
from tests.cluster.standalone import Cluster
from tests.cluster.story import Story
from tests.cluster.submitted import Archives
from tests.ledger_check import must_be_whole
from tests.spark import joins_by_hand
from tests.spark.test_restarts import QUERIES, events_of

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1800)]

MOST_STEPS = 5


def sample() -> list[Scenario]:
    """Return the first short scenario of each rule of the given file, without restarts: a restart takes a minute."""
    by_rule: dict[str, Scenario] = {}
    for scenario in load(Path(__file__).parents[1] / "scenarios" / "given.jsonl"):
        if len(scenario.steps) <= MOST_STEPS and not any(isinstance(step, Restart) for step in scenario.steps):
            by_rule.setdefault(scenario.rule, scenario)
    return list(by_rule.values())


SAMPLE = sample()


@pytest.fixture(scope="module")
def story(
    cluster: Cluster, archives: Archives, bootstrap_servers: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Story]:
    story = Story(cluster, archives, bootstrap_servers, tmp_path_factory.mktemp("story"), SAMPLE)
    try:
        story.play()
        print("\n".join(["", *story.observed.lines(), f"deaths to commits: {story.observed.met}"]))
        yield story
    finally:
        story.service.kill()


@pytest.fixture(scope="module")
def events(story: Story, bootstrap_servers: str) -> list[dict[str, Any]]:
    """The events of the queries that live through all phases."""
    ids = QUERIES.keys() | joins_by_hand.DEFINITIONS.keys()
    return [event for event in events_of(bootstrap_servers, f"{story.name}-events") if event["query_id"] in ids]


def test_deaths_lose_no_event_and_double_none(story: Story, events: list[dict[str, Any]]) -> None:
    found: dict[str, list[tuple[str, str, int, str]]] = defaultdict(list)
    for event in events:
        if event["kind"] == "border":
            found[event["stream_id"]].append((event["sign"], event["query_id"], event["event_time"], event["reason"]))
    expected: dict[str, list[tuple[str, str, int, str]]] = defaultdict(list)
    for said in story.run.borders.events:
        expected[said.stream].append((said.sign, said.query_id, said.event_time, said.reason))
    assert found == expected
    assert sum(map(len, found.values())) > 500


def test_deaths_lose_no_pair_and_no_reading(story: Story, events: list[dict[str, Any]]) -> None:
    emitted, definition = joins_by_hand.Definition(), story.run.joins
    emitted.tell(events)

    assert emitted.pairs == definition.pairs
    assert emitted.found == definition.found
    assert emitted.selected == definition.selected
    assert emitted.pairs
    assert emitted.found
    assert emitted.selected


def test_the_ledger_is_whole(story: Story, bootstrap_servers: str) -> None:
    must_be_whole(bootstrap_servers, f"{story.name}-events")


@pytest.mark.parametrize("who", ["executor", "worker", "driver"])
def test_a_death_meets_a_batch(who: str, story: Story) -> None:
    assert story.observed.met[who] > 0


def test_an_executor_that_joins_later_gets_work(story: Story) -> None:
    at_work = story.observed.at_work

    assert at_work["one executor"] == 1
    assert at_work["second joins"] == 2
    assert at_work["executor dies"] == 2
    assert at_work["worker dies"] == 1


def test_the_driver_sees_each_executor_that_joins(story: Story) -> None:
    log = story.service._log.read_text(encoding="utf-8", errors="replace")

    # The first, the second, the one in the place of the killed one, one on the new worker or of the second driver.
    assert log.count("Executors that joined") >= 4


def test_executors_run_the_python_that_they_were_given(story: Story, archives: Archives) -> None:
    interpreters, folders = (set(found) for found in zip(*story.observed.pythons, strict=True))

    assert interpreters == {archives.settings().get("spark.pyspark.python", sys.executable)}
    if archives.packages is None:
        assert folders == {str(Path(numpy.__file__).parents[1])}
    else:  # a link in the folder of each executor leads to where Spark has unpacked the archive
        assert all("bmq-packages" in folder for folder in folders)


def test_executors_compile_no_kernel(story: Story, cluster: Cluster, archives: Archives) -> None:
    with tarfile.open(archives.kernels) as archive:
        shipped = {Path(name).name for name in archive.getnames() if name.endswith(".nbc")}
    found = {path.name for worker in cluster.workers for path in worker.files.rglob("*.nbc")}

    assert found == shipped


@pytest.mark.parametrize("number", range(len(SAMPLE)), ids=[scenario.name for scenario in SAMPLE])
def test_the_scenario_is_met(number: int, story: Story) -> None:
    assert story.outcomes[number].differences == ()
