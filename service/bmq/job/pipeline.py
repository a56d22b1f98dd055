"""The streaming query: two sources, and one stateful operator, which writes to Kafka itself.

    control, clock ──► `job.source` ──┐
                                      ├─► groupBy(shard) ─► ShardProcessor ─► observe
    feeds ───────────► `job.source` ──┘                           └─► Kafka

Both sources belong to one streaming query, so the offsets of both are in one log and a replay sees the same batches.
"""

from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from bmq.config import Config
from bmq.job.checkpoint import Origin
from bmq.job.output import OUTPUT_DDL
from bmq.job.plan import Plan
from bmq.job.session import is_submitted
from bmq.job.source.source_settings import Bound, SourceSettings
from bmq.job.source.topic_source import topic_source
from bmq.job.stateful import ShardProcessor

OBSERVATION = "bmq"  # the name of the observed metrics that carry the counters to the driver


def start_pipeline(spark: SparkSession, config: Config, origin: Origin, plan: Plan) -> StreamingQuery:
    """Start the streaming query on its checkpoint and return it."""
    frames = _control_frames(spark, config, origin, plan).union(_reading_frames(spark, config, plan))
    return start_query(frames, plan, config.job.checkpoint, config.job.trigger)


def start_query(frames: DataFrame, plan: Plan, checkpoint: str, trigger: str) -> StreamingQuery:
    """Start a streaming query over rows of `frame_rows.FRAME_DDL`; ``trigger`` is as in the configuration."""
    output = frames.groupBy("shard").transformWithStateInPandas(
        ShardProcessor(plan), outputStructType=OUTPUT_DDL, outputMode="append", timeMode="none"
    )
    counters = [
        F.max(F.when(F.col("shard") == shard, F.col("counters"))).alias(f"shard_{shard}")
        for shard in range(plan.n_shards)
    ]
    often: dict[str, Any] = {"availableNow": True} if trigger == "available_now" else {"processingTime": trigger}
    return (
        output.observe(OBSERVATION, *counters)
        .writeStream.format("noop")
        .queryName("bmq")
        .outputMode("append")
        .option("checkpointLocation", checkpoint)
        .trigger(**often)
        .start()
    )


def _control_frames(spark: SparkSession, config: Config, origin: Origin, plan: Plan) -> DataFrame:
    starts = {config.topics.control: {0: 0}}
    if plan.clock_topic is not None:
        starts[plan.clock_topic] = origin.clock_start
    # Compaction removes records that do not count any more. Whoever makes the control topic anew means the new commands
    # to be read, and a service that stopped would read none; the log says which offsets are gone.
    limits = config.limits
    bound = Bound(limits.commands_per_batch, limits.command_bytes_per_batch, whole_until=origin.control_end)
    n_tasks = _tasks_at_once(spark, plan)
    settings = SourceSettings(plan, starts, None, n_tasks, "continue", {config.topics.control: bound})
    return _frames(spark, "bmq_control", settings)


def _reading_frames(spark: SparkSession, config: Config, plan: Plan) -> DataFrame:
    settings = SourceSettings(
        plan,
        plan.starts_by_topic(),
        config.job.max_readings_per_batch,
        _tasks_at_once(spark, plan),
        config.job.on_data_loss,
    )
    return _frames(spark, "bmq_feeds", settings)


def _tasks_at_once(spark: SparkSession, plan: Plan) -> int:
    """Return into how many tasks a large batch is divided.

    On a cluster at least one for each shard: executors may join later, and their cores are not counted yet.
    """
    cores = spark.sparkContext.defaultParallelism
    return max(cores, plan.n_shards) if is_submitted() else cores


def _frames(spark: SparkSession, name: str, settings: SourceSettings) -> DataFrame:
    spark.dataSource.register(topic_source(name, settings))
    return spark.readStream.format(name).load()
