"""Makes the homes of the shards (`job.homes`): a process with all kernels loaded that does nothing but fork them.

    daemon of the workers ── forks, once ──► nursery ── forks ──► home of shard 0, home of shard 1 …

A home is forked from here and not from a worker, because the threads of a worker's Kafka client would not survive. If
the nursery was killed, a worker starts another one (`job.spare_nursery`). All of them end with the daemon.
"""

import logging
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection

from bmq.owned_process import WATCH_SECONDS, Door, address_of, no_return

Serve = Callable[[Door], None]  # what a home does

_log = logging.getLogger(__name__)


def fork_nursery(owner: int, serve: Serve) -> None:
    """Fork the nursery of this process, its owner; it listens when this returns."""
    door = Door(nursery_address(owner), owner)
    if os.fork() == 0:
        with no_return():
            _become_a_server()
            Nursery(owner, door, serve).run()
    door.close()


def nursery_address(owner: int) -> str:
    """Return where the nursery of an owner listens."""
    return address_of("nursery", owner)


def home_address(owner: int, shard: int) -> str:
    """Return where the home of a shard listens."""
    return address_of(f"shard{shard}", owner)


class Nursery:
    """Forks a home for each shard that is named, unless it lives."""

    def __init__(self, owner: int, door: Door, serve: Serve) -> None:
        self._owner = owner
        self._door = door
        self._serve = serve
        self._homes: dict[int, int] = {}  # shard -> process id

    def run(self) -> None:
        """Answer until the owner has ended."""
        for connection in self._door.visits():
            self._note_ends()
            if connection is None:
                continue
            with suppress(EOFError, OSError):
                if connection.poll(WATCH_SECONDS):  # whoever connects sends at once
                    self._make(int(connection.recv()), connection)

    def _make(self, shard: int, connection: Connection) -> None:
        if shard not in self._homes:
            self._homes[shard] = self._fork(shard, connection)
        connection.send(True)

    def _fork(self, shard: int, connection: Connection) -> int:
        door = Door(home_address(self._owner, shard), self._owner)
        home = os.fork()
        if home == 0:
            with no_return():
                self._door.close()
                connection.close()
                self._serve(door)
        door.close()
        return home

    def _note_ends(self) -> None:
        for shard, home in list(self._homes.items()):
            ended, status = os.waitpid(home, os.WNOHANG)
            if ended:
                del self._homes[shard]
                if status:
                    code = os.waitstatus_to_exitcode(status)
                    how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
                    _log.error(
                        "Process %d of shard %d has ended %s. Signal 9 is often the system's, for want of memory.",
                        home,
                        shard,
                        how,
                    )


def _become_a_server() -> None:
    """Leave the daemon's session and pipes: signals and the ends of files there are not for this process."""
    os.setsid()
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, sys.stdin.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
