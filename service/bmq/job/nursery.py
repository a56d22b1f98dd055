"""Makes the homes of the shards (`job.homes`): a process with all kernels loaded that does nothing but fork them.

    daemon of the workers ── forks, once ──► nursery ── forks ──► home of shard 0, home of shard 1 …

A home is forked from here and not from a worker, because the threads of a worker's Kafka client would not survive. If
the nursery was killed, a worker starts another one (`job.spare_nursery`). All of them end with the daemon.
"""

import os
import signal
import socket
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from pathlib import Path

from bmq.owned_process import WATCH_SECONDS, address_of, has_ended, remove_address

Serve = Callable[[socket.socket, int], None]  # what a home does: listener, owner


def fork_nursery(owner: int, serve: Serve) -> None:
    """Fork the nursery of this process, its owner; it listens when this returns."""
    address = nursery_address(owner)
    listener = listen(address)
    if os.fork() == 0:
        with _no_return():
            _become_a_server()
            run_nursery(owner, address, listener, serve)
    listener.close()


def nursery_address(owner: int) -> str:
    """Return where the nursery of an owner listens."""
    return address_of("nursery", owner)


def home_address(owner: int, shard: int) -> str:
    """Return where the home of a shard listens."""
    return address_of(f"shard{shard}", owner)


def run_nursery(owner: int, address: str, listener: socket.socket, serve: Serve) -> None:
    """Fork a home for each shard that a worker names, until the owner has ended; then end the process."""
    with _no_return():
        _Nursery(owner, listener, serve).run()
        remove_address(address)


class _Nursery:
    """Forks a home for each shard that is named, unless it lives."""

    def __init__(self, owner: int, listener: socket.socket, serve: Serve) -> None:
        self._owner = owner
        self._listener = listener
        self._serve = serve
        self._homes: dict[int, int] = {}  # shard -> process id

    def run(self) -> None:
        self._listener.settimeout(WATCH_SECONDS)
        while not has_ended(self._owner):
            self._forget_ended()
            try:
                accepted, _ = self._listener.accept()
            except TimeoutError:
                continue
            accepted.setblocking(True)
            with Connection(accepted.detach()) as connection, suppress(EOFError, OSError):
                shard = int(connection.recv())
                self._forget_ended()
                if shard not in self._homes:
                    self._homes[shard] = self._fork(shard, connection)
                connection.send(True)

    def _fork(self, shard: int, connection: Connection) -> int:
        address = home_address(self._owner, shard)
        listener = listen(address)
        home = os.fork()
        if home == 0:
            with _no_return():
                self._listener.close()
                connection.close()
                self._serve(listener, self._owner)
                remove_address(address)
        listener.close()
        return home

    def _forget_ended(self) -> None:
        for shard, home in list(self._homes.items()):
            if os.waitpid(home, os.WNOHANG) != (0, 0):
                del self._homes[shard]


def listen(address: str) -> socket.socket:
    """Return a socket that listens at an address in the file system."""
    Path(address).unlink(missing_ok=True)  # of a process that was killed
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen(64)
    return listener


@contextmanager
def _no_return() -> Iterator[None]:
    """End the process behind the block: what follows is the work of the process from which it was forked."""
    try:
        yield
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


def _become_a_server() -> None:
    """Leave the daemon's session and pipes: signals and the ends of files there are not for this process."""
    os.setsid()
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, sys.stdin.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
