"""Where this user's machine keeps what we download or compile. Knows the environment and nothing of ours."""

import os
from pathlib import Path


def cache_folder() -> Path:
    """Return the folder that keeps things between runs: BMQ_CACHE_DIR, or `bmq` in the user's cache folder."""
    named = os.environ.get("BMQ_CACHE_DIR")
    if named:
        return Path(named).absolute()
    users = os.environ.get("XDG_CACHE_HOME")
    return (Path(users) if users else Path.home() / ".cache").absolute() / "bmq"
