"""A process that loads the kernels while Spark's JVM starts. The daemon of the Python workers is forked from it.

    service ── starts ──► this process ── forks ──► daemon ── forks ──► workers, nursery
    JVM ─── starts ──► `job.worker_daemon` ── says what the JVM says ──► daemon

To load the kernels takes some five seconds. Spark starts no other Python process while it waits for a daemon, so they
were spent while nothing else could go on. Whoever Spark has started as the daemon sends its arguments, environment and
files here, and passes on what comes later: the JVM reaches the daemon as if it were its child.

On a cluster the JVM of an executor starts its daemon, and nobody starts this process.
"""

import os
import select
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Client, Connection
from multiprocessing.reduction import recv_handle, send_handle

from bmq.owned_process import (
    PAUSE_SECONDS,
    WATCH_SECONDS,
    Door,
    address_of,
    has_ended,
    is_starting,
    no_return,
    start_once,
)

# Its value is the address. The JVM and the daemon that it starts inherit it.
VARIABLE = "BMQ_PRELOADED"

_CHUNK = 4_096
_STDIN, _STDOUT, _STDERR = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Start:
    """What makes a process another one: its arguments, environment and folder. Its files come behind it."""

    argv: list[str]
    environ: dict[str, str]
    folder: str


def start_loading() -> None:
    """Start the process, and name it to the processes that this one starts; it ends with this one."""
    owner = os.getpid()
    address = address_of("preloaded", owner)
    start_once("bmq.job.preloaded", address, owner)
    os.environ[VARIABLE] = address


def stand_in() -> None:
    """Have the daemon forked and pass on what the JVM says, until one of them ends; then end this process.

    It returns at once where nobody has loaded the kernels: then this process must be the daemon itself.
    """
    address = os.environ.get(VARIABLE)
    if address is None:
        return
    while is_starting(address):
        time.sleep(PAUSE_SECONDS)
    with suppress(ConnectionError, FileNotFoundError, EOFError), Client(address, "AF_UNIX") as connection:
        reads, writes = os.pipe()
        connection.send(Start(sys.argv, dict(os.environ), os.getcwd()))
        for file in (reads, _STDOUT, _STDERR):
            send_handle(connection, file, None)  # Windows alone needs a process id
        os.close(reads)
        _pass_on(connection.recv(), writes)


def _pass_on(daemon: int, writes: int) -> None:
    """Pass on standard input, then end this process. With it, or before, the daemon's input ends, and so the daemon."""
    while not has_ended(daemon):
        if select.select([_STDIN], [], [], WATCH_SECONDS)[0]:
            said = os.read(_STDIN, _CHUNK)
            if not said:
                break
            with suppress(BrokenPipeError):
                os.write(writes, said)
    os._exit(0)


def main(address: str, owner: int, lock: int) -> None:
    """Load the kernels, then fork a daemon for each process that asks, until the owner has ended.

    The arguments are those of `owned_process.start_once`.
    """
    door = Door(address, owner)
    os.close(lock)
    # Not at the top: whoever stands in for the daemon needs none of it, and this process must listen soon.
    from bmq.job.forking import serve
    from bmq.job.warmup import load_for_forks

    load_for_forks()
    for connection in door.visits():
        with suppress(ChildProcessError):
            os.waitpid(-1, os.WNOHANG)
        if connection is None:
            continue
        with suppress(EOFError, OSError):
            _fork(connection, door, serve)


def _fork(connection: Connection, door: Door, serve: Callable[[], None]) -> None:
    start: Start = connection.recv()
    files = [recv_handle(connection) for _ in (_STDIN, _STDOUT, _STDERR)]
    if os.fork() == 0:
        with no_return():
            door.close()
            connection.send(os.getpid())
            connection.close()
            _become(start, files)
            serve()
    for file in files:
        os.close(file)


def _become(start: Start, files: list[int]) -> None:
    """Take over the arguments, environment, folder and files of the process that Spark has started."""
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    sys.argv[:] = start.argv
    os.environ.clear()
    os.environ.update(start.environ)
    os.chdir(start.folder)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
