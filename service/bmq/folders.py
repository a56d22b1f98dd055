"""The folder for downloaded jars and compiled kernels. Knows the environment, and no other module of the service."""

import os
from pathlib import Path


def cache_folder() -> Path:
    """Return the folder that persists between runs: BMQ_CACHE_DIR, or `bmq` in the user's cache folder."""
    named = os.environ.get("BMQ_CACHE_DIR")
    if named:
        return Path(named).absolute()
    users = os.environ.get("XDG_CACHE_HOME")
    return (Path(users) if users else Path.home() / ".cache").absolute() / "bmq"
