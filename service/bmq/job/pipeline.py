"""The streaming query: two sources, and one stateful operator, which writes to Kafka itself.

    control, clock ──► Spark's Kafka source ─► decode_control ──┐
                                                                ├─► groupBy(shard) ─► ShardProcessor ─► observe
    feeds ───────────► our own source (`job.source`) ───────────┘                           └─► Kafka

Both sources belong to one streaming query, so the offsets of both are in one log and a replay sees the same batches.
"""

import json
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from bmq.config import Config, KafkaSection
from bmq.job.checkpoint import Origin
from bmq.job.decode import decode_control
from bmq.job.frame_rows import FRAME_DDL
from bmq.job.output import OUTPUT_DDL
from bmq.job.plan import Plan
from bmq.job.source.feeds import NAME, feed_source
from bmq.job.source.source_settings import SourceSettings
from bmq.job.stateful import ShardProcessor
from bmq.kafka_io.connect import ISOLATION, ISOLATION_OPTION

# One poll fetches as many records as a task reads in some milliseconds, so that a task seldom blocks on the broker.
READ_OPTIONS = {
    "kafka.max.poll.records": "50000",
    "kafka.max.partition.fetch.bytes": "16777216",
    "kafka.fetch.max.bytes": "67108864",
    f"kafka.{ISOLATION_OPTION}": ISOLATION,
}

EARLIEST = -2  # Spark's number for the earliest offset

OBSERVATION = "bmq"  # the name of the observed metrics that carry the counters to the driver


def start_pipeline(spark: SparkSession, config: Config, origin: Origin, plan: Plan) -> StreamingQuery:
    """Start the streaming query on its checkpoint and return it."""
    frames = _control_frames(spark, config, origin, plan).union(_reading_frames(spark, config, origin, plan))
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


def read_options(kafka: KafkaSection) -> dict[str, str]:
    """Return the options of Spark's Kafka source; an option of the configuration replaces one of the service."""
    return {**READ_OPTIONS, **kafka.spark_options()}


def _control_frames(spark: SparkSession, config: Config, origin: Origin, plan: Plan) -> DataFrame:
    starts = {config.topics.control: {"0": EARLIEST}}
    if plan.clock_topic is not None:
        starts[plan.clock_topic] = {str(partition): offset for partition, offset in origin.clock_start.items()}
    records = (
        spark.readStream.format("kafka")
        .options(**read_options(config.kafka))
        .option("subscribe", ",".join(starts))
        .option("startingOffsets", json.dumps(starts))
        # Compaction and retention remove offsets, and a recreated topic restarts them; neither loses a reading.
        .option("failOnDataLoss", "false")
        .load()
        .select("topic", "key", "value", "offset")
    )
    return records.mapInArrow(decode_control(plan), FRAME_DDL)


def _reading_frames(spark: SparkSession, config: Config, origin: Origin, plan: Plan) -> DataFrame:
    settings = SourceSettings(
        plan,
        _by_topic(plan, origin.start_offsets),
        config.job.max_readings_per_batch,
        spark.sparkContext.defaultParallelism,
        config.job.on_data_loss,
    )
    spark.dataSource.register(feed_source(settings))
    return spark.readStream.format(NAME).load()


def _by_topic(plan: Plan, offsets: dict[str, dict[int, int]]) -> dict[str, dict[int, int]]:
    return {plan.feeds[feed].topic: partitions for feed, partitions in offsets.items()}
