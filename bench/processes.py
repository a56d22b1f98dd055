"""How much processor time and memory a process and all its descendants have taken, from /proc.

The homes of shards and the writer lead sessions of their own, so those of one session are not all.
"""

import os
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

CLOCK_TICKS = os.sysconf("SC_CLK_TCK")
DAEMONS = {"bmq.job.worker_daemon", "bmq.job.preloaded"}  # where there is the second, the daemon is forked from it


@dataclass(frozen=True, slots=True)
class Process:
    """One line of /proc.

    Attributes
    ----------
    command : the words of its command line.
    ticks : of the processor, with those of its ended children.
    """

    pid: int
    parent: int
    session: int
    command: tuple[str, ...]
    ticks: int


def cpu_seconds(root: int) -> dict[str, float]:
    """Return the processor time of each program among a process and its descendants."""
    seconds: dict[str, float] = defaultdict(float)
    for name, process in _tree(root):
        seconds[name] += process.ticks / CLOCK_TICKS
    return seconds


def memory_bytes(root: int) -> dict[str, int]:
    """Return the memory of each program among a process and its descendants; pages that several share are divided."""
    found: dict[str, int] = defaultdict(int)
    for name, process in _tree(root):
        try:
            lines = Path(f"/proc/{process.pid}/smaps_rollup").read_text().splitlines()
        except OSError:  # it has ended
            continue
        found[name] += sum(1024 * int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return found


def n_of(name: str, root: int) -> int:
    """Return how many processes of this name, as `cpu_seconds` has them, are among a process and its descendants."""
    return sum(name == found for found, _ in _tree(root))


def _tree(root: int) -> Iterator[tuple[str, Process]]:
    """Yield the processes with their names; a child of the nursery, which leads a session, is a home."""
    processes = {process.pid: process for process in _all()}
    below = {root}
    while more := {process.pid for process in processes.values() if process.parent in below} - below:
        below |= more
    for pid in below & processes.keys():
        process = processes[pid]
        parent = processes.get(process.parent)
        is_home = parent is not None and _is_nursery(parent, processes.get(parent.parent))
        yield "home" if is_home else _name(process), process


def _is_nursery(process: Process, parent: Process | None) -> bool:
    """Whether it was forked, from the daemon, and leads a session: the daemon's own parent has another command."""
    was_forked = parent is not None and parent.command == process.command
    return was_forked and bool(DAEMONS & set(process.command)) and process.session == process.pid


def _name(process: Process) -> str:
    program = process.command[0].rpartition("/")[2]
    is_module = "-m" in process.command[1:2]
    return f"{program} {process.command[2]}" if is_module else program


def _all() -> Iterator[Process]:
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            command = (folder / "cmdline").read_text().split("\0")
        except OSError:  # it has ended
            continue
        ticks = sum(int(field) for field in fields[11:15])
        yield Process(int(folder.name), int(fields[1]), int(fields[3]), tuple(command), ticks)
