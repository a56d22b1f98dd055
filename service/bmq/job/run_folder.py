"""The folder for the temporary files of one run, and the removal of those that a killed run has left.

    <folder for temporary files>/bmq-<user>/
      run-x/     files of Spark, of the JVM and of RocksDB; locked as long as the service lives
      …

A run removes its folder at its end. SIGKILL leaves it, so the next start removes every folder that nobody holds. The
folder itself is locked and not a file in it, so that a folder that is removed in part is no other case.
"""

import fcntl
import logging
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bmq.errors import SetupError
from bmq.owned_process import private_folder

_PREFIX = "run-"
_TRIES = 3  # whoever leaves the folder of all runs last removes it, perhaps while another one comes

_log = logging.getLogger(__name__)


class RunFolder:
    """A folder that only this user can open, and that is locked until `leave` or the end of this process.

    Parameters
    ----------
    parent : the folder for temporary files in which it is.

    Raises
    ------
    SetupError : others can write to the folder of all runs, or this user cannot.
    """

    def __init__(self, parent: str) -> None:
        for tries_left in reversed(range(_TRIES)):
            try:
                self._runs = private_folder(parent)
                with _held(self._runs):
                    _sweep(self._runs)
                    self.path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=self._runs))
                    self._lock = _locked(self.path)
            except OSError as error:
                if tries_left and isinstance(error, FileNotFoundError):
                    continue
                raise SetupError(
                    f"No folder for temporary files can be made in {parent} ({error}). Set TMPDIR to a folder on a "
                    "local disk where this user may write."
                ) from error
            return

    def leave(self) -> None:
        """Remove it, and the folder of all runs if nobody else uses that."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)
        with suppress(OSError):
            self._runs.rmdir()


@contextmanager
def _held(folder: Path) -> Iterator[None]:
    """Let one start at a time look at the folder: a run's folder has no lock in the moment when it is made.

    Raises
    ------
    FileNotFoundError : somebody has removed it meanwhile.
    """
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if os.fstat(descriptor).st_ino != folder.stat().st_ino:
            raise FileNotFoundError(folder)
        yield
    finally:
        os.close(descriptor)


def _locked(folder: Path) -> int:
    """Lock a folder; return the descriptor that holds the lock.

    Raises
    ------
    BlockingIOError : somebody else holds it.
    """
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _sweep(runs: Path) -> None:
    """Remove the folders of runs that were killed."""
    for folder in runs.glob(f"{_PREFIX}*"):
        with suppress(OSError):
            lock = _locked(folder)
            shutil.rmtree(folder, ignore_errors=True)
            os.close(lock)
            if not folder.exists():
                _log.info("Removed %s: temporary files of a run that was killed.", folder)
