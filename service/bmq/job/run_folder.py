"""The folder for the temporary files of one run, and the removal of those that a killed run has left.

    <folder for temporary files>/bmq-<user>/
      run-4711-x/       one run
        .lock           held as long as the service lives
        …               files of Spark, of the JVM and of RocksDB

A run removes its folder at its end. SIGKILL leaves it, so the next start removes every folder that nobody holds.
"""

import fcntl
import logging
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from bmq.owned_process import private_folder

_PREFIX = "run-"
_LOCK = ".lock"
_TRIES = 3  # a run that ends removes the folder of all runs, if it was the last one

_log = logging.getLogger(__name__)


class RunFolder:
    """A folder that only this user can open, and that is locked until `leave` or the end of this process.

    Parameters
    ----------
    parent : the folder for temporary files in which it is.

    Raises
    ------
    SetupError : others can write to the folder of all runs.
    """

    def __init__(self, parent: str) -> None:
        for tries_left in reversed(range(_TRIES)):
            self._runs = private_folder(parent)
            try:
                with _held(self._runs):
                    _sweep(self._runs)
                    self.path = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir=self._runs))
                    self._lock: IO[str] = (self.path / _LOCK).open("w")
                    fcntl.flock(self._lock, fcntl.LOCK_EX)
            except FileNotFoundError:
                if tries_left == 0:
                    raise
            else:
                break

    def leave(self) -> None:
        """Remove it, and the folder of all runs if nobody else uses that."""
        shutil.rmtree(self.path, ignore_errors=True)
        self._lock.close()
        with suppress(OSError):
            self._runs.rmdir()


@contextmanager
def _held(folder: Path) -> Iterator[None]:
    """Let one start at a time look at the folder: a run's folder has no lock in the moment when it is made."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _sweep(runs: Path) -> None:
    """Remove the folders of runs that were killed."""
    for folder in runs.glob(f"{_PREFIX}*"):
        with suppress(OSError), (folder / _LOCK).open("r+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
            _log.info("Removed %s: temporary files of a run that was killed.", folder)
