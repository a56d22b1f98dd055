"""Some batches of nothing, before the service says that it runs.

The first batch of a streaming query loads some ten thousand classes of the JVM and RocksDB, and starts Python
processes. That took ten seconds, in which readings waited. So a streaming query of the same plan, with a temporary
checkpoint, runs before the real one. It reads no topic, and it writes nothing to Kafka. Readings that are there already
would only wait longer: then there is no rehearsal.
"""

import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from bmq.job.checkpoint import last_position
from bmq.job.pipeline import start_query
from bmq.job.plan import Plan
from bmq.job.session import start_worker_daemons, temporary_folder
from bmq.job.source.rehearsal_source import NAME, rehearsal_source
from bmq.kafka_io.topics import Topics


def readings_wait(plan: Plan, topics: Topics, folder: Path | None) -> bool:
    """Return whether a feed has readings that no batch has read.

    Parameters
    ----------
    folder : of the checkpoint; None: it is on another file system, and False is returned, because nobody has looked.

    Raises
    ------
    StateError : a file of the checkpoint is damaged.
    """
    if folder is None:
        return False
    starts = plan.starts_by_topic()
    reached = {**starts, **last_position(folder).offsets}
    return any(
        end > reached[topic].get(partition, 0)
        for topic, ends in topics.end_offsets(starts).items()
        for partition, end in ends.items()
    )


def rehearse(spark: SparkSession, plan: Plan) -> None:
    """Run the batches; return when the workers have loaded the kernels and the JVM has run the whole plan.

    Only on one machine: on a cluster the executors do not share a temporary folder, and each would need a rehearsal.

    Raises
    ------
    StreamingQueryException : a batch failed, as each batch of the service would.
    """
    plan = replace(plan, run_id="rehearsal", markers_topic=None)
    temporary = tempfile.TemporaryDirectory(prefix="rehearsal-", dir=temporary_folder(), ignore_cleanup_errors=True)
    with temporary as folder, ThreadPoolExecutor(1) as beside:
        # The daemon loads kernels meanwhile: the first batch needs a worker only when Spark has planned it.
        daemon = beside.submit(start_worker_daemons, spark)
        spark.dataSource.register(rehearsal_source(plan))
        # Loaded once: each load starts a Python process that asks for the schema.
        frames = spark.readStream.format(NAME).load()
        query = start_query(frames.union(frames), plan, Path(folder).as_uri(), "available_now")
        try:
            daemon.result()
            query.awaitTermination()
        finally:
            query.stop()
    # Whoever listens from now on hears nothing of it.
    context: Any = spark.sparkContext._jsc
    context.sc().listenerBus().waitUntilEmpty()
