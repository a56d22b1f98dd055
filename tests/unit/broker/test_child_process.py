"""A child ends with us: when we stop it, when it is stubborn, and when we are killed."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bmq.broker.child_process import Watched
from tests.brokers import wait_until

pytestmark = pytest.mark.unit

STUBBORN = ["/bin/sh", "-c", "trap '' TERM; echo ready; while :; do sleep 1; done"]
OBEDIENT = ["/bin/sh", "-c", "echo ready; exec sleep 600"]


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """A pipe whose writing end only a child keeps: reading sees the end exactly when the child is gone."""
    reader, writer = os.pipe()
    yield reader, writer
    os.close(reader)


def start(command: list[str], folder: Path, pipe: tuple[int, int]) -> Watched:
    """Return a child that is ready and alone holds the pipe's writing end."""
    log = folder / "log"
    with log.open("wb") as file:
        child = Watched(command, folder=folder, log=file, keep_open=pipe[1])
    os.close(pipe[1])
    wait_until(lambda: log.read_text() == "ready\n", "the child's first word")
    return child


def test_a_child_is_stopped_by_sigterm(tmp_path: Path, pipe: tuple[int, int]) -> None:
    child = start(OBEDIENT, tmp_path, pipe)
    assert child.exit_code() is None

    child.stop(limit_seconds=30.0)

    assert child.exit_code() == -signal.SIGTERM


def test_a_child_that_ignores_sigterm_is_killed(tmp_path: Path, pipe: tuple[int, int]) -> None:
    child = start(STUBBORN, tmp_path, pipe)

    child.stop(limit_seconds=0.2)

    assert child.exit_code() == -signal.SIGKILL


def test_a_child_that_ended_by_itself_can_be_stopped_too(tmp_path: Path, pipe: tuple[int, int]) -> None:
    child = start(["/bin/sh", "-c", "echo ready; exit 7"], tmp_path, pipe)
    assert wait_until(child.exit_code, "the child's end") == 7

    child.stop(limit_seconds=30.0)

    assert child.exit_code() == 7


@pytest.mark.parametrize("command", [OBEDIENT, STUBBORN], ids=["obedient", "stubborn"])
def test_a_child_ends_when_we_are_killed(tmp_path: Path, pipe: tuple[int, int], command: list[str]) -> None:
    reader, writer = pipe
    code = (
        "import sys; from pathlib import Path; from bmq.broker.child_process import Watched;"
        "child = Watched(sys.argv[3:], folder=Path('.'), log=open('log', 'wb'), keep_open=int(sys.argv[1]));"
        "sys.stdin.read()"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", code, str(writer), "--", *command],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        pass_fds=(writer,),
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    os.close(writer)
    with parent:
        log = tmp_path / "log"
        wait_until(lambda: log.is_file() and log.read_text() == "ready\n", "the child's first word")

        parent.kill()

    assert os.read(reader, 1) == b""  # pytest-timeout is the limit
