"""A process that serves the Python workers of one executor, and ends with its owner: the daemon that forks them.

    worker ──┐  Unix socket in a private folder
    worker ──┴──────────────────────────────────► the process  ─ ─ ends with ─ ─► owner

Knows processes, sockets and files, but not what such a process does.
"""

import fcntl
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Client, Connection
from pathlib import Path

from bmq.errors import SetupError

# Seconds. A busy machine takes some seconds to start a Python process, and to load the kernels.
START_SECONDS = 120.0

WATCH_SECONDS = 1.0  # how long a process outlives its owner

_PAUSE_SECONDS = 0.01


class OwnerEnded(SetupError):
    """The process from which the workers are forked has ended."""


class _Daemon:
    """The process from which the workers are forked; they inherit its process id."""

    pid: int | None = None


def own_workers() -> int:
    """Make this process the owner for the workers that it forks from now on; return its process id."""
    _Daemon.pid = os.getpid()
    return _Daemon.pid


def owner_of_worker() -> int:
    """Return the process id of a worker's owner: its parent.

    Raises
    ------
    OwnerEnded : the parent has ended. Spark goes on with such a worker, but nobody would end what it starts.
    """
    parent = os.getppid()
    if _Daemon.pid not in {None, parent}:
        raise OwnerEnded("The process that starts the Python workers has ended. The batch runs again with new ones.")
    return parent


def has_ended(owner: int) -> bool:
    """Return whether an owner has ended."""
    try:
        os.kill(owner, 0)
    except OSError:  # it is gone, or its number belongs to somebody else's process
        return True
    return False


def address_of(name: str, owner: int) -> str:
    """Return the address of an owner's process.

    Raises
    ------
    SetupError : the folder is somebody else's.
    """
    folder = Path(tempfile.gettempdir()) / f"bmq-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        raise SetupError(
            f"The folder {folder} belongs to another user, who could read and write all events. Remove it."
        )
    return str(folder / f"{name}-{owner}")


def start_once(module: str, address: str, owner: int) -> None:
    """Start a module as the process at an address, unless it runs or starts already.

    Its arguments are the address, the owner, and the descriptor of a lock that it closes as soon as it listens.
    """
    with suppress(FileNotFoundError), open(f"{address}.lock", "w") as lock:  # somebody may just remove the folder
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return  # it starts: it holds the lock until it listens
        with suppress(ConnectionError, FileNotFoundError):
            Client(address, "AF_UNIX").close()
            return
        Path(address).unlink(missing_ok=True)  # of a process that was killed
        command = [sys.executable, "-m", module, address, str(owner), str(lock.fileno())]
        # A session of its own: a signal to the owner's group does not end it in the middle of its work.
        subprocess.Popen(command, pass_fds=[lock.fileno()], start_new_session=True)


def connect(address: str, start: Callable[[], None], what: str) -> Connection:
    """Return a connection to the process at an address; call ``start`` again and again until it listens.

    Parameters
    ----------
    what : how an error calls the process.

    Raises
    ------
    SetupError : it did not start within START_SECONDS.
    """
    deadline = time.monotonic() + START_SECONDS
    while True:
        with suppress(ConnectionError, FileNotFoundError):
            return Client(address, "AF_UNIX")
        if time.monotonic() > deadline:
            raise SetupError(f"The {what} did not start within {START_SECONDS:.0f} s. Look at the log above.")
        start()
        time.sleep(_PAUSE_SECONDS)


def end_with(owner: int, address: str) -> None:
    """Wait until the owner has ended; then remove the files of this process, and end it."""
    while not has_ended(owner):
        time.sleep(WATCH_SECONDS)
    remove_address(address)
    os._exit(0)


def remove_address(address: str) -> None:
    """Remove the files at an address, and their folder if nobody else uses it."""
    for file in (address, f"{address}.lock"):
        Path(file).unlink(missing_ok=True)
    with suppress(OSError):  # others are in it
        Path(address).parent.rmdir()
