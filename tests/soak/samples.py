"""What a running service uses: descriptors, threads and memory of its processes, files and bytes of its folders."""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median

Sample = dict[str, float]  # quantity -> number; memory and folders in MB

_MB = 1024 * 1024


@dataclass(frozen=True)
class Bound:
    """How much a quantity may grow from the second third of the samples to the last.

    Attributes
    ----------
    share, more : of its value, and beside that.
    """

    share: float
    more: float


# By the end of a quantity's name.
BOUNDS = {
    "processes": Bound(0.0, 3),  # Spark forks a worker whenever no idle one is there
    "descriptors": Bound(0.02, 8),
    "threads": Bound(0.05, 8),
    "memory": Bound(0.05, 60),
    "files": Bound(0.10, 40),
    "bytes": Bound(0.10, 20),
}

# What is below does not grow without end: the JVM touches its fixed heap of 3 GB page by page, and its pools make their
# threads in the first minutes (some 310 in all); Spark keeps the files of
# a hundred batches, and it and RocksDB remove older ones every minute.
CEILINGS = {"jvm memory": 4_096.0, "jvm threads": 500.0, "checkpoint files": 3_000.0, "temporary files": 1_000.0}


def sample(processes: Mapping[str, Sequence[int]], folders: Mapping[str, Path]) -> Sample:
    """Return the number of processes of each part and what the largest one uses, and the size of the folders.

    Parameters
    ----------
    processes : part -> process ids.
    """
    found: Sample = {}
    for part, pids in processes.items():
        numbers = [_of_process(pid) for pid in pids]
        for name in ("descriptors", "threads", "memory"):
            found[f"{part} {name}"] = max((number[name] for number in numbers), default=0.0)
        found[f"{part} processes"] = len(pids)
    for name, folder in folders.items():
        sizes = list(_sizes(folder))
        found[f"{name} files"] = len(sizes)
        found[f"{name} bytes"] = sum(sizes) / _MB
    return found


def what_grows(samples: Sequence[Sample]) -> list[str]:
    """Return a sentence for each quantity that grows by more than its bound, from the middle third to the last."""
    third = len(samples) // 3
    growing = []
    for name in samples[-1]:
        before = median(one.get(name, 0.0) for one in samples[third : 2 * third])
        after = median(one.get(name, 0.0) for one in samples[2 * third :])
        bound = BOUNDS[name.rsplit(" ", 1)[1]]
        most = before * (1 + bound.share) + bound.more
        if after > most and after > CEILINGS.get(name, 0.0):
            growing.append(f"{name}: {before:.1f} in the middle, {after:.1f} at the end, at most {most:.1f} allowed")
    return growing


def _of_process(pid: int) -> dict[str, float]:
    """Return what one process uses; nothing if it has ended. Memory that processes share is divided among them."""
    found = {"descriptors": 0.0, "threads": 0.0, "memory": 0.0}
    with suppress(FileNotFoundError, ProcessLookupError):
        found["descriptors"] = len(os.listdir(f"/proc/{pid}/fd"))
        found["threads"] = len(os.listdir(f"/proc/{pid}/task"))
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                found["memory"] = int(line.split()[1]) / 1024
    return found


def _sizes(folder: Path) -> list[int]:
    sizes = []
    for root, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                sizes.append((Path(root) / name).lstat().st_size)
    return sizes
