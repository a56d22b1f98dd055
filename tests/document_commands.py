"""Runs the commands that a document shows, as its reader would, with this interpreter's `bmq` and a Kafka of the test.

A block `sh` holds commands. A block `text` right behind it holds what they print.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
# Seconds. Two busy cores need 20 for Spark to start, as much again for the first batch, and in a fresh clone some
# minutes to compile the kernels.
LIMIT_SECONDS = 400.0
_STEP = re.compile(r"^```sh\n(?P<commands>.*?)^```\n(?:\n```text\n(?P<output>.*?)^```\n)?", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Step:
    """Commands of a document, and the output that the document promises; None: it shows no output."""

    commands: str
    output: str | None


def steps_of(document: Path) -> list[Step]:
    """Return the steps of a document, in its order."""
    found = _STEP.finditer(document.read_text(encoding="utf-8"))
    return [Step(match["commands"], match["output"]) for match in found]


def environment_of_reader(servers: str, folder: Path) -> dict[str, str]:
    """Return an environment with this interpreter's `bmq`, a Kafka in place of localhost:9092, and a new checkpoint."""
    return os.environ | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "service"),
        "BMQ_KAFKA__BOOTSTRAP_SERVERS": servers,
        "BMQ_JOB__CHECKPOINT": str(folder / "checkpoint"),
        "BMQ_METRICS__PORT": "0",
    }


def printed(commands: str, environment: dict[str, str], folder: Path = ROOT) -> str:
    """Return what commands print to stdout and stderr; whether they fail is in their text."""
    here = commands.replace("localhost:9092", environment["BMQ_KAFKA__BOOTSTRAP_SERVERS"])
    return subprocess.run(
        ["bash", "-c", here],
        env=environment,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT_SECONDS,
    ).stdout


@contextmanager
def started(command: str, environment: dict[str, str], output: Path, folder: Path = ROOT) -> Iterator[None]:
    """Run one command in the background as long as the context; its output goes to a file."""
    with output.open("wb") as file:
        process = subprocess.Popen(
            ["bash", "-c", f"exec {command}"], env=environment, cwd=folder, stdout=file, stderr=subprocess.STDOUT
        )
    try:
        yield
    finally:
        process.terminate()
        process.wait(60)
