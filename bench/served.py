"""The service by its command, over a topic that is full before it starts: its configuration and its progress."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bmq.job.checkpoint import last_position
from tests.conformance.service import Service, toml_text

LIMIT_SECONDS = 900.0
POLL_SECONDS = 0.05


def write_config(
    folder: Path,
    bootstrap: str,
    topic: str,
    topics: Mapping[str, str],
    n_shards: int,
    batch_readings: int,
    metrics_port: int = 0,
) -> Path:
    """Write the configuration of a run in a plane; the checkpoint is beside it.

    Parameters
    ----------
    topic : of the readings.
    topics : role -> name, as `[topics]` has them.
    """
    tables: dict[str, Any] = {
        "kafka": {"bootstrap_servers": bootstrap},
        "topics": topics,
        "feeds.vehicles": {"topic": topic, "stream_id": "id", "event_time": "ts", "dimensions": ["x", "y"]},
        "job": {
            "checkpoint": str(folder / "checkpoint"),
            "shards": n_shards,
            "starting_offsets": "earliest",
            "max_readings_per_batch": batch_readings,
        },
        "metrics": {"port": metrics_port},
    }
    path = folder / "bmq.toml"
    path.write_text(toml_text(tables), encoding="utf-8")
    return path


def wait_for(service: Service, topic: str, n_readings: int) -> int:
    """Wait until so many readings of a topic are in finished batches; return how many are."""
    deadline = time.monotonic() + LIMIT_SECONDS
    while (n := sum(last_position(service.checkpoint).offsets.get(topic, {}).values())) < n_readings:
        if not service.runs():
            raise service.failed("the service has ended")
        if time.monotonic() > deadline:
            raise service.failed(f"{n:,} of {n_readings:,} readings within {LIMIT_SECONDS:.0f} s")
        time.sleep(POLL_SECONDS)
    return n
