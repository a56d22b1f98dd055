"""Processes of this machine by `ps`: who is whose child."""

import subprocess
from typing import NamedTuple


class Process(NamedTuple):
    """A line of `ps`."""

    pid: int
    parent: int
    command: str


def descendants(pid: int) -> list[Process]:
    """Return the children of a process, their children, and so on."""
    found = []
    parents = {pid}
    processes = _all()
    while children := [process for process in processes if process.parent in parents]:
        found += children
        parents = {process.pid for process in children}
    return found


def _all() -> list[Process]:
    lines = subprocess.run(
        ["ps", "-ww", "-eo", "pid=,ppid=,args="], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    return [Process(int(pid), int(parent), command) for pid, parent, command in (line.split(None, 2) for line in lines)]
