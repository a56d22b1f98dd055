"""What Spark's JVM and its workers write to their log, in the log of the service.

Spark prints several lines for every worker that it starts, and a traceback for a worker that was idle for a minute and
whose socket the JVM has closed. They mean nothing to an operator. So the JVM writes to a pipe, and a thread copies the
other lines. With debug logging it copies all.
"""

import logging
import os
import re
from collections.abc import Iterable, Iterator
from threading import Thread

_log = logging.getLogger("spark")

# As Spark 4.2 words them.
_CHATTER = re.compile(
    r"\s*$"
    r"|Starting Streaming TransformWithState\w* Python worker"
    r"|Streaming TransformWithState\w* Python worker "
    r"|Picked up _?JAVA_\w*OPTIONS: "
    r"|WARNING: Using incubator modules: "
    r"|Using Spark's default log4j profile: "
    r"|Setting default log level to "
    r"|To adjust logging level use "
    r"|\S+ \S+ WARN Utils: Your hostname, .* resolves to a loopback address"
    r"|\S+ \S+ WARN Utils: Set SPARK_LOCAL_IP if you need to bind to another address"
    r"|\S+ \S+ WARN NativeCodeLoader: Unable to load native-hadoop library"
    r"|PySpark daemon failed to flush the output to the worker process:"
)
_TRACEBACK = "Traceback (most recent call last):"
_OF_DAEMON = re.compile(r'  File ".*pyspark/daemon\.py", line \d+, in (manager|worker)$')
_WITH_LEVEL = re.compile(r"\d\d/\d\d/\d\d \d\d:\d\d:\d\d (TRACE|DEBUG|INFO|WARN|ERROR|FATAL) ")
_ERROR = re.compile(r"Traceback |Exception in thread ")
_CONTINUED = re.compile(r"\s|Caused by: |Suppressed: |[\w.$]+(Exception|Error)\b|\t*\.\.\. \d+ more")


class JvmLog:
    """A pipe for the JVM's stderr, and the thread that copies it to the log.

    Give ``write_end`` to the JVM, and close it here when the JVM has been started or could not be.
    """

    def __init__(self) -> None:
        self._read_end, self.write_end = os.pipe()
        self._is_muted = False
        self._thread = Thread(target=self._copy, name="bmq-jvm-log", daemon=True)
        self._thread.start()

    def mute(self) -> None:
        """Copy no more, except with debug logging: the service has said its last sentence."""
        self._is_muted = True

    def close_write_end(self) -> None:
        """Leave the pipe to the JVM: it ends when the JVM does."""
        os.close(self.write_end)

    def join(self, seconds: float) -> None:
        """Wait until all that an ended JVM has written is copied, for ``seconds`` at most."""
        self._thread.join(seconds)

    def _copy(self) -> None:
        with os.fdopen(self._read_end, encoding="utf-8", errors="backslashreplace", newline="\n") as lines:
            level = logging.WARNING
            for line in lines if _log.isEnabledFor(logging.DEBUG) else without_chatter(lines):
                level, text = _read_level(line.rstrip("\n"), level)
                if not self._is_muted or _log.isEnabledFor(logging.DEBUG):
                    _log.log(level, "%s", text)


def without_chatter(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines that say something; tracebacks come when their last line has been read.

    Workers that end at the same time write their tracebacks through each other, line by line.
    """
    tracebacks: list[str] = []
    n_open = 0
    for line in lines:
        if line.startswith(_TRACEBACK):
            tracebacks.append(line)
            n_open += 1
        elif n_open and not _WITH_LEVEL.match(line):
            tracebacks.append(line)
            n_open -= not line.startswith(" ")
            if not n_open:
                if not _are_of_closed_sockets(tracebacks):
                    yield from tracebacks
                tracebacks = []
        elif not _CHATTER.match(line):
            yield line
    yield from tracebacks


def _are_of_closed_sockets(tracebacks: list[str]) -> bool:
    """Return whether daemons found the sockets of their workers closed, and nothing else happened."""
    frames = [line for line in tracebacks if line.startswith("  File ")]
    errors = [line for line in tracebacks if not line.startswith((" ", _TRACEBACK))]
    return all(error.startswith("BrokenPipeError: ") for error in errors) and all(map(_OF_DAEMON.match, frames))


def _read_level(line: str, before: int) -> tuple[int, str]:
    """Return the level of a line and its text; ``before`` is the level of the line before it.

    A line without a level of log4j goes on with an error, or is a warning: libraries and workers print such lines.
    """
    found = _WITH_LEVEL.match(line)
    if found is not None:
        level = {"WARN": "WARNING", "FATAL": "CRITICAL", "TRACE": "DEBUG"}.get(found[1], found[1])
        return logging.getLevelNamesMapping()[level], line[found.end() :]
    if _ERROR.match(line):
        return logging.ERROR, line
    return (before if _CONTINUED.match(line) else logging.WARNING), line
