"""A process that serves the Python workers of one executor, and ends with its owner: the daemon that forks them.

    worker ──┐  Unix socket in a private folder
    worker ──┴──────────────────────────────────► the process  ─ ─ ends with ─ ─► owner

Knows processes, sockets and files, but not what such a process does.
"""

import fcntl
import os
import socket
import stat
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Client, Connection
from pathlib import Path

from bmq.errors import SetupError

# Seconds. A busy machine takes some seconds to start a Python process, and to load the kernels.
START_SECONDS = 120.0

WATCH_SECONDS = 1.0  # how long a process outlives its owner

# Bytes. The path of a Unix socket has at most 107 on Linux and 103 on macOS. Behind this folder come that of the user
# (15) and that of the run (13), and Spark's name of a socket (43).
LONGEST_FOLDER = 32

PAUSE_SECONDS = 0.01
_STDERR = 2


_OWNER_ENDED = "The process that starts the Python workers has ended. The batch runs again with new ones."


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
        raise OwnerEnded(_OWNER_ENDED)
    return parent


def has_ended(owner: int) -> bool:
    """Return whether an owner has ended. Its parent may not know yet: it may wait for our end of a pipe meanwhile."""
    try:
        os.kill(owner, 0)
    except OSError:  # it is gone, or its number belongs to somebody else's process
        return True
    try:
        state = Path(f"/proc/{owner}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:  # it has ended just now, or this system has no such files
        return Path("/proc/self").exists()
    return state in "ZX"


@contextmanager
def no_return() -> Iterator[None]:
    """End the process behind the block: what follows is the work of the process from which it was forked."""
    code = 1
    try:
        yield
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def socket_folder() -> str:
    """Return the folder for sockets and what holds them: the one for temporary files, unless its name is too long."""
    usual = tempfile.gettempdir()
    return usual if len(os.fsencode(usual)) < LONGEST_FOLDER else "/tmp"  # noqa: S108 - whoever uses it makes a private one


def address_of(name: str, owner: int) -> str:
    """Return the address of an owner's process.

    Raises
    ------
    SetupError : others can write to the folder. They could make this user run what they like.
    """
    return str(private_folder(socket_folder()) / f"{name}-{owner}")


def private_folder(parent: str) -> Path:
    """Return the folder in ``parent`` that only this user can open, made if missing.

    Raises
    ------
    SetupError : others can write to it.
    """
    folder = Path(parent) / f"bmq-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise SetupError(
            f"{folder} must be a folder of this user that nobody else can open, and it is not. Remove it, or set "
            "TMPDIR to a folder that is short and yours."
        )
    return folder


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
        subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=_STDERR,
            pass_fds=[lock.fileno()],
            env={**os.environ, "PYTHONHASHSEED": "0"},  # as Spark's scripts set it: what is forked from it hashes alike
            # A session of its own: a signal to the owner's group does not end it in the middle of its work.
            start_new_session=True,
        )


def is_starting(address: str) -> bool:
    """Return whether `start_once` has started a process that does not listen at its address yet."""
    with suppress(FileNotFoundError), open(f"{address}.lock") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def connect(address: str, owner: int, start: Callable[[], None], what: str) -> Connection:
    """Return a connection to the process at an address; call ``start`` again and again until it listens.

    Parameters
    ----------
    what : how an error calls the process.

    Raises
    ------
    SetupError : it did not start within START_SECONDS.
    OwnerEnded : the owner has ended, so that nothing may start for it any more.
    """
    deadline = time.monotonic() + START_SECONDS
    while True:
        with suppress(ConnectionError, FileNotFoundError):
            return Client(address, "AF_UNIX")
        if has_ended(owner):
            raise OwnerEnded(_OWNER_ENDED)
        if time.monotonic() > deadline:
            raise SetupError(f"The {what} did not start within {START_SECONDS:.0f} s. Look at the log above.")
        start()
        time.sleep(PAUSE_SECONDS)


class Door:
    """A socket that listens at an address for its process, until the owner has ended or somebody removed the address.

    A process that cannot be reached any more must end: others start another one in its place.
    """

    def __init__(self, address: str, owner: int) -> None:
        Path(address).unlink(missing_ok=True)  # of a process that was killed
        self._owner = owner
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(address)
        self._socket.listen(64)
        self._socket.settimeout(WATCH_SECONDS)
        self._place = _Place(address)

    def visits(self) -> Iterator[Connection | None]:
        """Yield each connection, and None after each WATCH_SECONDS without one; remove the address at the end."""
        while not has_ended(self._owner) and self._place.is_ours():
            try:
                accepted, _ = self._socket.accept()
            except TimeoutError:
                yield None
                continue
            accepted.setblocking(True)
            with Connection(accepted.detach()) as connection:
                yield connection
        self._place.leave()

    def close(self) -> None:
        """Close it in this process, and leave it to another one that was forked."""
        self._socket.close()


class _Place:
    """A file that this process has made."""

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        self._inode = self._path.stat().st_ino

    def is_ours(self) -> bool:
        with suppress(OSError):
            return self._path.stat().st_ino == self._inode
        return False

    def leave(self) -> None:
        """Remove the file and its lock, and their folder if nobody else uses it."""
        if not self.is_ours():
            return
        for file in (self._path, Path(f"{self._path}.lock")):
            file.unlink(missing_ok=True)
        with suppress(OSError):  # others are in it
            self._path.parent.rmdir()


def end_with(owner: int, address: str) -> None:
    """Wait until the owner has ended, or the file at the address is gone; then end this process."""
    place = _Place(address)
    while not has_ended(owner) and place.is_ours():
        time.sleep(WATCH_SECONDS)
    place.leave()
    os._exit(0)
