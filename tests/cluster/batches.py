"""The batches of a checkpoint on this machine: which one is under way, and how long each took."""

import json
from pathlib import Path

from bmq.job.checkpoint import batches_in


def batch_under_way(checkpoint: Path) -> int | None:
    """Return the number of the batch that is planned and not committed; None: there is none."""
    planned, committed = (max(batches_in(checkpoint / name), default=-1) for name in ("offsets", "commits"))
    return planned if planned > committed else None


def committed_at(checkpoint: Path, batch: int) -> float:
    """Return when a batch was committed, in seconds since 1970."""
    return (checkpoint / "commits" / str(batch)).stat().st_mtime


def batch_seconds(checkpoint: Path) -> dict[int, float]:
    """Return batch -> seconds from its trigger to its commit.

    A batch that another driver began counts from that driver's trigger.
    """
    seconds = {}
    for batch in sorted(batches_in(checkpoint / "commits")):
        metadata = (checkpoint / "offsets" / str(batch)).read_text(encoding="utf-8").splitlines()[1]
        seconds[batch] = committed_at(checkpoint, batch) - json.loads(metadata)["batchTimestampMs"] / 1000
    return seconds
