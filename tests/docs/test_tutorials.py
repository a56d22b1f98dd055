"""The tutorials, followed as a newcomer follows them: every command, and every output, with one service for all."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from bmq.broker.broker import Broker
from tests.brokers import wait_until
from tests.document_commands import LIMIT_SECONDS, ROOT, Step, environment_of_reader, printed, started, steps_of

pytestmark = [pytest.mark.docs, pytest.mark.timeout(900)]

TUTORIALS = ROOT / "docs" / "tutorials"
PAGES = ["fleet", "prices", "sensors"]
SERVE, VIEW = "bmq serve\n", "bmq view\n"


class Newcomer:
    """Somebody with an empty folder, who types what a page says."""

    def __init__(self, servers: str, folder: Path) -> None:
        self.folder = folder / "tutorial"
        self.folder.mkdir()
        self.environment = environment_of_reader(servers, folder)

    def follow(self, step: Step) -> None:
        output = printed(step.commands, self.environment, self.folder)
        assert comparable(output) == comparable(step.output or ""), step.commands


def comparable(output: str) -> list[str]:
    """Return the lines of an output, without what a page says may differ: versions, and the order of streams."""
    return sorted(re.sub(r"version \d+$", "version N", line) for line in output.splitlines())


@pytest.fixture(scope="module")
def newcomer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Newcomer]:
    """The first page: it ends with a service that runs."""
    folder = tmp_path_factory.mktemp("tutorials")
    steps = steps_of(TUTORIALS / "start.md")
    assert [step.commands for step in steps if step.commands in (SERVE, VIEW)] == [SERVE, VIEW]
    with Broker(folder / "kafka") as broker:
        someone = Newcomer(broker.bootstrap_servers, folder)
        for step in steps:
            if step.commands not in (SERVE, VIEW):
                someone.follow(step)
        log = folder / "serve.log"
        with started(SERVE, someone.environment, log, someone.folder):
            wait_until(lambda: "Running" in log.read_text(), "the service to run", LIMIT_SECONDS)
            yield someone


def test_every_page_is_followed() -> None:
    assert sorted(path.stem for path in TUTORIALS.glob("*.md")) == sorted(["start", *PAGES])
    for page in PAGES:
        steps = steps_of(TUTORIALS / f"{page}.md")
        assert sum(step.output is not None for step in steps) >= 5
        # Nothing that looks like a command is left out by the pattern.
        assert len(steps) == (TUTORIALS / f"{page}.md").read_text().count("```sh")


@pytest.mark.parametrize("page", PAGES)
def test_a_tutorial_prints_what_it_shows(page: str, newcomer: Newcomer) -> None:
    for step in steps_of(TUTORIALS / f"{page}.md"):
        newcomer.follow(step)


def test_the_page_of_the_first_tutorial_is_served(newcomer: Newcomer) -> None:
    log = newcomer.folder / "view.log"
    with started(f"{VIEW.strip()} --port 0", newcomer.environment, log, newcomer.folder):
        wait_until(lambda: "http://127.0.0.1:" in log.read_text(), "the address of the page")


def test_the_events_of_all_tutorials_keep_the_ledger(newcomer: Newcomer) -> None:
    report = printed("bmq check-ledger --from-beginning && echo kept", newcomer.environment, newcomer.folder)
    assert report.splitlines()[-1] == "kept", report
