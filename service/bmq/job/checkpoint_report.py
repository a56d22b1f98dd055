"""What is in a checkpoint, as lines for a person."""

import time
from collections import Counter
from collections.abc import Iterator

from pyspark.sql import SparkSession

from bmq.job.replicas import state_bytes
from bmq.job.source.offsets import Position
from bmq.job.stored_state import StoredCheckpoint


def report(spark: SparkSession, checkpoint: StoredCheckpoint) -> Iterator[str]:
    """Yield the lines: format, shards, batch, queries, streams, offsets, age, size."""
    origin, folder = checkpoint.origin, checkpoint.folder
    documents = checkpoint.documents()  # first, as a service that runs removes old ones
    age = time.time() - (folder / "commits" / str(checkpoint.batch)).stat().st_mtime
    queries: dict[str, int] = {}
    streams: Counter[str] = Counter()
    n_bytes = 0
    for head, monitor in checkpoint.shards(spark):
        queries = monitor.n_queries()  # every shard has all queries
        streams.update(monitor.n_streams())
        n_bytes += state_bytes(head)
    yield f"format: {checkpoint.format}"
    yield f"shards: {origin.shards}"
    yield f"last batch: {checkpoint.batch}{_unfinished(checkpoint)}"
    yield f"age of the last batch: {max(0.0, age):.0f} s"
    yield f"queries: {sum(queries.values())}{_by_name(queries)}"
    yield f"streams: {streams.total()}{_by_name(streams)}"
    for document in documents:
        for topic, partitions in sorted(Position.of(document).offsets.items()):
            reached = ", ".join(f"{partition}: {offset}" for partition, offset in sorted(partitions.items()))
            yield f"next offsets of {topic}: {reached}"
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    yield f"size: {size} bytes in files, {n_bytes} bytes of live state"


def _unfinished(checkpoint: StoredCheckpoint) -> str:
    return f", and batch {checkpoint.planned} has begun" if checkpoint.planned > checkpoint.batch else ""


def _by_name(counts: dict[str, int]) -> str:
    there = [f"{name} {n}" for name, n in sorted(counts.items()) if n]
    return f" ({', '.join(there)})" if there else ""
