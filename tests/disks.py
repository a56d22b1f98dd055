"""Small disks, for faults of a full one: only root can mount them."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def mount(folder: Path, megabytes: int) -> str | None:
    """Mount an empty disk at a folder; return why that is not possible, or None."""
    if os.geteuid() != 0:
        return "only root may mount a disk"
    command = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder)]
    run = subprocess.run(command, capture_output=True, text=True)
    return f"no disk can be mounted here: {run.stderr.strip()}" if run.returncode else None


def unmount(folder: Path) -> None:
    """Take a disk away, also while somebody uses it."""
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


@contextmanager
def full(folder: Path) -> Iterator[None]:
    """Fill the disk of a folder; make room again at the end."""
    other = folder / "other"
    try:
        with other.open("wb", buffering=0) as file:
            while free := os.statvfs(folder).f_bavail * os.statvfs(folder).f_frsize:
                file.write(bytes(min(free, 1 << 20)))
        yield
    finally:
        other.unlink(missing_ok=True)
