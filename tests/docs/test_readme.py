"""The README's commands, run as they stand: the first query, the vehicle, the two events."""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bmq.broker.broker import Broker
from bmq.config import load_config
from bmq.records import Installation
from bmq.wire.control import validate_definition
from tests.brokers import wait_until
from tests.document_commands import LIMIT_SECONDS, ROOT, environment_of_reader, printed, started

pytestmark = [pytest.mark.docs, pytest.mark.timeout(900)]

BLOCKS = re.findall(r"```sh\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[dict[str, str]]:
    """A Kafka of its own in place of localhost:9092, a fresh checkpoint, and this interpreter's `bmq`."""
    with Broker(tmp_path / "kafka") as broker:
        yield environment_of_reader(broker.bootstrap_servers, tmp_path)


def test_the_first_query_gives_the_two_events_that_the_readme_promises(
    environment: dict[str, str], tmp_path: Path
) -> None:
    put, drive = (block for block in BLOCKS if "bmq query put" in block or "Producer" in block)
    (put_line,) = re.findall(r"^echo .*\| bmq query put .*$", put, re.MULTILINE)
    (events_line,) = re.findall(r"^bmq events.*$", put, re.MULTILINE)
    drive = drive.replace(".venv/bin/python", sys.executable)
    shown = tmp_path / "events.txt"

    log = tmp_path / "serve.log"
    with started("bmq serve --config config/local.toml", environment, log):
        wait_until(lambda: "Running" in log.read_text(), "the service to run", LIMIT_SECONDS)
        with started(events_line, environment, shown):
            assert "accepted" in printed(put_line, environment)
            assert printed(drive, environment) == ""
            wait_until(lambda: len(lines(shown)) >= 2, "two events", LIMIT_SECONDS)

    assert len(lines(shown)) == 2
    assert all("v7" in line and "downtown" in line for line in lines(shown))


@pytest.mark.parametrize("document", ["README.md", "docs/wire-format.md", "docs/cli.md"])
def test_every_definition_of_the_documents_is_accepted(document: str) -> None:
    feeds = load_config(ROOT / "config" / "local.toml").feed_records()
    objects = re.findall(r"\{\"kind\": .*?\}(?=\n(?!\s)|')", (ROOT / document).read_text(), re.DOTALL)

    definitions = [found for found in map(json.loads, objects) if "query_id" not in found]
    assert definitions
    for definition in definitions:
        validate_definition("q", definition, Installation(feeds, "bmq."))


def test_every_make_target_of_the_documents_is_there() -> None:
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    documents = [ROOT / "README.md", *(ROOT / "docs").glob("**/*.md"), ROOT / "tests" / "README.md"]

    for document in documents:
        named = set(re.findall(r"`make ([a-z0-9-]+)", document.read_text())) | {
            line.split()[1] for line in re.findall(r"^make .*$", document.read_text(), re.MULTILINE)
        }
        assert named <= targets, f"{document.name} names {named - targets}"


def lines(path: Path) -> list[str]:
    return [line for line in path.read_text().splitlines() if line.strip()]
