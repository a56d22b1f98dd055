"""The daemon of the workers, forked from a process that has loaded the kernels, and who ends with whom."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from bmq.job.preloaded import VARIABLE
from bmq.owned_process import address_of, has_ended, socket_folder
from tests.brokers import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

# What a service does first; it ends when its input does.
SERVICE = f"""
import os, sys
from bmq.job.preloaded import start_loading
start_loading()
print(os.environ["{VARIABLE}"], flush=True)
sys.stdin.read()
"""


@dataclass(frozen=True, slots=True)
class Daemon:
    """What Spark has started, and the process that listens for it."""

    started: "subprocess.Popen[bytes]"
    pid: int


@pytest.fixture(scope="module", autouse=True)
def own_folder() -> Iterator[str]:
    """A folder for sockets that no other service uses, with a short name."""
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory(prefix="p", dir=socket_folder()) as folder:
        patch.setenv("TMPDIR", folder)
        patch.setattr(tempfile, "tempdir", None)
        yield folder


@pytest.fixture
def service() -> "Iterator[subprocess.Popen[str]]":
    with subprocess.Popen(
        [sys.executable, "-c", SERVICE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process


@pytest.fixture
def start(service: "subprocess.Popen[str]", own_folder: str) -> Iterator[Callable[[], Daemon]]:
    """Start a daemon as Spark does, and wait until it listens."""
    assert service.stdout is not None
    environ = {
        **os.environ,
        VARIABLE: service.stdout.readline().strip(),
        "PYTHON_UNIX_DOMAIN_ENABLED": "true",
        "PYTHON_WORKER_FACTORY_SOCK_DIR": own_folder,
    }
    started = []

    def start() -> Daemon:
        before = set(Path(own_folder).glob("*/nursery-*"))
        process = subprocess.Popen(
            [sys.executable, "-m", "bmq.job.worker_daemon", "pyspark.worker"],
            env=environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        started.append(process)
        assert process.stdout is not None
        n_bytes = int.from_bytes(process.stdout.read(4), "big")
        assert process.stdout.read(n_bytes).decode().startswith(own_folder)
        (nursery,) = set(Path(own_folder).glob("*/nursery-*")) - before
        return Daemon(process, int(nursery.name.rpartition("-")[2]))

    yield start
    for process in started:
        process.kill()
        process.communicate()


def _command(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")


def _preloaded(service: "subprocess.Popen[str]") -> int:
    """Return the process id of the process with the kernels."""
    lines = subprocess.run(["ps", "-ww", "-eo", "pid=,ppid=,args="], capture_output=True, text=True, check=True).stdout
    (found,) = [
        int(line.split()[0])
        for line in lines.splitlines()
        if line.split()[1] == str(service.pid) and address_of("preloaded", service.pid) in line
    ]
    return found


def test_the_daemon_ends_with_the_jvm_and_with_what_the_jvm_started(
    service: "subprocess.Popen[str]", start: Callable[[], Daemon]
) -> None:
    first = start()
    assert "bmq.job.preloaded" in _command(first.pid)
    # Spark's scripts set it; with another one, what iterates over a set of texts would do so in another order.
    assert "PYTHONHASHSEED=0" in Path(f"/proc/{_preloaded(service)}/environ").read_text().split("\0")
    first.started.communicate()  # the JVM has ended: no more input
    wait_until(lambda: has_ended(first.pid), "the end of the first daemon")

    second = start()
    second.started.kill()
    wait_until(lambda: has_ended(second.pid), "the end of the second daemon")

    third = start()
    os.kill(third.pid, signal.SIGKILL)
    assert third.started.wait(60) == 0

    service.communicate()
    wait_until(lambda: not Path(address_of("preloaded", service.pid)).exists(), "the end of the preloaded process")


def test_without_the_preloaded_process_the_daemon_loads_the_kernels_itself(
    service: "subprocess.Popen[str]", start: Callable[[], Daemon]
) -> None:
    os.kill(_preloaded(service), signal.SIGKILL)
    daemon = start()

    assert daemon.pid == daemon.started.pid
    assert "bmq.job.worker_daemon" in _command(daemon.pid)
