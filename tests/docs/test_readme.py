"""The README's commands, run as they stand: the first query, the vehicle, the two events."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bmq.broker.broker import Broker
from bmq.config import load_config
from bmq.records import Installation
from bmq.wire.control import validate_definition
from tests.brokers import wait_until

pytestmark = [pytest.mark.docs, pytest.mark.timeout(900)]

ROOT = Path(__file__).parents[2]
BLOCKS = re.findall(r"```sh\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
# Seconds. Two busy cores need 20 for Spark to start, as much again for the first batch, and in a fresh clone some
# minutes to compile the kernels.
LIMIT_SECONDS = 400.0


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[dict[str, str]]:
    """A Kafka of its own in place of localhost:9092, a fresh checkpoint, and this interpreter's `bmq`."""
    with Broker(tmp_path / "kafka") as broker:
        yield os.environ | {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "BMQ_KAFKA__BOOTSTRAP_SERVERS": broker.bootstrap_servers,
            "BMQ_JOB__CHECKPOINT": str(tmp_path / "checkpoint"),
            "BMQ_METRICS__PORT": "0",
        }


def test_the_first_query_gives_the_two_events_that_the_readme_promises(
    environment: dict[str, str], tmp_path: Path
) -> None:
    put, drive = (block for block in BLOCKS if "bmq query put" in block or "Producer" in block)
    (put_line,) = re.findall(r"^echo .*\| bmq query put .*$", put, re.MULTILINE)
    (events_line,) = re.findall(r"^bmq events.*$", put, re.MULTILINE)
    servers = environment["BMQ_KAFKA__BOOTSTRAP_SERVERS"]
    drive = drive.replace(".venv/bin/python", sys.executable).replace("localhost:9092", servers)
    shown = tmp_path / "events.txt"

    log = tmp_path / "serve.log"
    with started("bmq serve --config config/local.toml", environment, log):
        wait_until(lambda: "Running" in log.read_text(), "the service to run", LIMIT_SECONDS)
        with started(events_line, environment, shown):
            assert "accepted" in run(put_line, environment)
            run(drive, environment)
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
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    documents = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), ROOT / "tests" / "README.md"]

    for document in documents:
        named = set(re.findall(r"`make ([a-z-]+)", document.read_text())) | {
            line.split()[1] for line in re.findall(r"^make .*$", document.read_text(), re.MULTILINE)
        }
        assert named <= targets, f"{document.name} names {named - targets}"


def run(command: str, environment: dict[str, str]) -> str:
    done = subprocess.run(
        ["bash", "-c", command], env=environment, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT_SECONDS
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


class started:
    """A command in the background whose output goes to a file; ended by its process id."""

    def __init__(self, command: str, environment: dict[str, str], output: Path) -> None:
        self._command, self._environment, self._output = command, environment, output

    def __enter__(self) -> None:
        with self._output.open("wb") as output:
            self._process = subprocess.Popen(
                ["bash", "-c", f"exec {self._command}"],
                env=self._environment,
                cwd=ROOT,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(60)


def lines(path: Path) -> list[str]:
    return [line for line in path.read_text().splitlines() if line.strip()]
