"""What of Spark's log reaches the terminal."""

import os
import subprocess
import sys
import tempfile

import pytest

from bmq.job.jvm_log import JvmLog, without_chatter

LIMIT_SECONDS = 60

# As the JVM does with a worker that was idle for a minute: it says nothing and closes the connection.
CLOSING = """
import os, socket, struct, subprocess, sys, time
daemon = subprocess.Popen(
    [sys.executable, "-m", "pyspark.daemon", "pyspark.sql.worker.lookup_data_sources"],
    stdin=subprocess.PIPE, stdout=subprocess.PIPE,
)
(length,) = struct.unpack("!i", daemon.stdout.read(4))
with socket.socket(socket.AF_UNIX) as worker:
    worker.connect(daemon.stdout.read(length).decode())
    (pid,) = struct.unpack("!i", worker.recv(4))
while os.path.exists(f"/proc/{pid}"):
    time.sleep(0.05)
daemon.stdin.close()
daemon.wait()
"""


@pytest.fixture
def of_a_closed_worker() -> list[str]:
    """Return what Spark's daemon prints when the JVM has closed the socket of a worker."""
    # Not `tmp_path`, which is too long for the name of a socket.
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            **os.environ,
            "PYTHON_UNIX_DOMAIN_ENABLED": "true",
            "PYTHON_WORKER_FACTORY_SOCK_DIR": folder,
            "PYTHON_DAEMON_KILL_WORKER_ON_FLUSH_FAILURE": "1",  # as Spark starts it
        }
        run = subprocess.run(
            [sys.executable, "-c", CLOSING],
            env=environment,
            capture_output=True,
            text=True,
            timeout=LIMIT_SECONDS,
            check=True,
        )
    return run.stderr.splitlines(keepends=True)


def test_a_worker_that_the_jvm_has_closed_is_silent(of_a_closed_worker: list[str]) -> None:
    assert of_a_closed_worker[-1] == "BrokenPipeError: [Errno 32] Broken pipe\n"
    assert list(without_chatter(["before\n", *of_a_closed_worker, "after\n"])) == ["before\n", "after\n"]


def test_workers_that_the_jvm_has_closed_at_the_same_time_are_silent(of_a_closed_worker: list[str]) -> None:
    through_each_other = [line for line in of_a_closed_worker for _ in range(3)]
    other = [*of_a_closed_worker[:-1], "OSError: [Errno 28] No space left on device\n"]
    with_another = [line for both in zip(of_a_closed_worker, other, strict=True) for line in both]
    between = "26/11/30 09:09:48 WARN Utils: slow\n"

    assert list(without_chatter(["before\n", *through_each_other, "after\n"])) == ["before\n", "after\n"]
    assert list(without_chatter([*through_each_other[:4], between, *through_each_other[4:]])) == [between]
    assert list(without_chatter(with_another)) == with_another


def test_any_other_traceback_is_shown_whole(of_a_closed_worker: list[str]) -> None:
    of_ours = [*of_a_closed_worker[:-1], '  File "bmq/job/decode.py", line 1, in decode\n', of_a_closed_worker[-1]]
    another_error = [*of_a_closed_worker[:-1], "OSError: [Errno 28] No space left on device\n"]

    assert list(without_chatter(of_ours)) == of_ours
    assert list(without_chatter(another_error)) == another_error


def test_a_traceback_whose_end_never_came_is_shown(of_a_closed_worker: list[str]) -> None:
    assert list(without_chatter(of_a_closed_worker[:-1])) == of_a_closed_worker[:-1]


PRINTED = (
    b"WARNING: Using incubator modules: jdk.incubator.vector\n"
    b"\n"
    b"26/11/30 09:09:47 ERROR Executor: \xff is full\n"
    b"java.io.IOException\n"
    b"3 events became dead letters\n"
    b"Traceback (most recent call last):\n"
    b'  File "x.py", line 1, in x\n'
    b"ValueError: wrong\n"
    b"26/11/30 09:09:48 WARN Utils: slow\n"
)


@pytest.mark.parametrize(("level", "n_chatter"), [("INFO", 0), ("DEBUG", 2)])
def test_what_the_jvm_prints_comes_into_the_log(caplog: pytest.LogCaptureFixture, level: str, n_chatter: int) -> None:
    with caplog.at_level(level):
        log = JvmLog()
        subprocess.run(["cat"], input=PRINTED, stdout=log.write_end, check=True, timeout=LIMIT_SECONDS)
        log.close_write_end()
        log.join(LIMIT_SECONDS)

    assert [(found.levelname, found.getMessage()) for found in caplog.records][n_chatter:] == [
        ("ERROR", "Executor: \\xff is full"),
        ("ERROR", "java.io.IOException"),
        ("WARNING", "3 events became dead letters"),
        ("ERROR", "Traceback (most recent call last):"),
        ("ERROR", '  File "x.py", line 1, in x'),
        ("ERROR", "ValueError: wrong"),
        ("WARNING", "Utils: slow"),
    ]
    assert len(caplog.records) == n_chatter + 7


@pytest.mark.parametrize(("level", "n_lines"), [("INFO", 0), ("DEBUG", 1)])
def test_the_last_sentence_of_a_service_stays_the_last_line(
    caplog: pytest.LogCaptureFixture, level: str, n_lines: int
) -> None:
    with caplog.at_level(level):
        log = JvmLog()
        log.mute()
        subprocess.run(["echo", "a worker that ends"], stdout=log.write_end, check=True, timeout=LIMIT_SECONDS)
        log.close_write_end()
        log.join(LIMIT_SECONDS)

    assert len(caplog.records) == n_lines
