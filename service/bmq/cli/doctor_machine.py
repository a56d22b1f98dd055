"""What the doctor finds on the machine: descriptors, and room on the disks."""

import resource
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bmq.cli.findings import Finding, Level

# A service with 4 shards has some 400 descriptors in its JVM. Each shard adds files of RocksDB, and each partition a
# connection, so a large service needs several times that; systemd and Docker usually allow far more than this.
LEAST_DESCRIPTORS = 4_096
LEAST_ROOM_BYTES = 1_000_000_000


def look_at_machine(checkpoint: Path | None) -> Iterator[Finding]:
    """Return the findings.

    Parameters
    ----------
    checkpoint : its folder, or the nearest one above it that is there; None: it is not on this machine.
    """
    yield _descriptors()
    places = {"temporary files": Path(tempfile.gettempdir())}
    if checkpoint is not None:
        places["checkpoint's disk"] = checkpoint
    for what, folder in places.items():
        yield _room(what, folder)


def _descriptors() -> Finding:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= soft < LEAST_DESCRIPTORS:
        return Finding(
            Level.WARN,
            "descriptors",
            f"a process may open {soft} files, and the service may need {LEAST_DESCRIPTORS}. Raise the limit "
            f"(ulimit -n; up to {'any number' if hard < 0 else hard} here), or that of the unit or container.",
        )
    return Finding(Level.OK, "descriptors", "no limit" if soft < 0 else f"{soft} for each process")


def _room(what: str, folder: Path) -> Finding:
    free = shutil.disk_usage(folder).free
    text = f"{folder} has {free / 1e9:.1f} GB free"
    if free < LEAST_ROOM_BYTES:
        return Finding(Level.WARN, what, f"{text}. A service that fills it stops; make room, or name another folder.")
    return Finding(Level.OK, what, text)
