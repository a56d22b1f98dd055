"""The folders of the service. Knows the environment, and no other module of the service but its errors."""

import os
import tempfile
from pathlib import Path

from bmq.errors import SetupError


def cache_folder() -> Path:
    """Return the folder that persists between runs: BMQ_CACHE_DIR, or `bmq` in the user's cache folder."""
    named = os.environ.get("BMQ_CACHE_DIR")
    if named:
        return Path(named).absolute()
    users = os.environ.get("XDG_CACHE_HOME")
    return (Path(users) if users else Path.home() / ".cache").absolute() / "bmq"


def private_folder() -> Path:
    """Return the folder for sockets, to which only this user has access; create it.

    Raises
    ------
    SetupError : somebody else has it.
    """
    folder = Path(tempfile.gettempdir()) / f"bmq-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        raise SetupError(
            f"The folder {folder} belongs to another user, who could read and write all events. Remove it."
        )
    return folder
