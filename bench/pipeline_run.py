"""One run of one pipeline over a topic that is already full; prints what each batch took, as JSON.

    python -m bench.pipeline_run read|read-tuned|passthrough|passthrough-tuned BOOTSTRAP TOPIC BATCH_READINGS FOLDER
    python -m bench.pipeline_run bmq|latency|follow BOOTSTRAP TOPIC BATCH_READINGS FOLDER CONTROL_TOPIC EVENTS_TOPIC

The service delivers exactly once and writes the layout `crossing`. Words behind its name change this, in this order:
`-at-least-once`, `-by-reading` (the layout `reading`), `-of-prices` (readings have the one dimension x). `latency` and
`follow` read what arrives, until their standard input is closed; `follow` prints each batch as it ends, for one who
reads it. Each runs in a process of its own, with the same heap and garbage collector.
"""

import json
import os
import re
import sys
import threading
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from bmq.broker.ivy import pyspark_jars
from bmq.broker.jars import resolve, spark_jars
from bmq.config import Config
from bmq.job.service import Service
from bmq.job.session import MEMORY_OPTIONS, make_session

# Spark's own source and sink for Kafka, which the service does not use. PySpark ships what else they need.
SPARK_KAFKA = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0"
# What helps a job that reads much: one poll fetches as many records as a task reads in some milliseconds.
READ_OPTIONS = {
    "kafka.max.poll.records": "50000",
    "kafka.max.partition.fetch.bytes": "16777216",
    "kafka.fetch.max.bytes": "67108864",
}
# What the service sets for itself and would hinder a job of many rows: these are Spark's own defaults.
PLAIN_SETTINGS = {
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
    "spark.driver.extraJavaOptions": MEMORY_OPTIONS,
}

AT_LEAST_ONCE = "-at-least-once"
BY_READING = "-by-reading"
OF_PRICES = "-of-prices"
KEPT_X_M = 6_000.0  # a tenth of the plane: the plain Spark job keeps 10 % of the rows


def main(pipeline: str, bootstrap: str, topic: str, batch_readings: int, folder: Path, *topics: str) -> None:
    """Run one pipeline and print its batches."""
    work = pipeline.removesuffix(OF_PRICES).removesuffix(BY_READING).removesuffix(AT_LEAST_ONCE)
    if work in ("bmq", "latency", "follow"):
        options = pipeline.removeprefix(work)
        batches = run_service(work, options, bootstrap, topic, batch_readings, folder, *topics)
    else:
        batches = run_plain(pipeline, bootstrap, topic, batch_readings, folder)
    print(json.dumps(batches))


def run_service(
    pipeline: str,
    options: str,
    bootstrap: str,
    topic: str,
    batch_readings: int,
    folder: Path,
    control: str,
    events: str,
) -> list[dict[str, object]]:
    """Run the service: to the end of the topic, or as long as standard input is open."""
    dimensions = ["x"] if OF_PRICES in options else ["x", "y"]
    config = Config(
        feeds={"vehicles": {"topic": topic, "stream_id": "id", "event_time": "ts", "dimensions": dimensions}},
        job={
            "checkpoint": str(folder),
            "shards": 2,
            "trigger": "available_now" if pipeline == "bmq" else "0 seconds",
            "starting_offsets": "earliest",
            "max_readings_per_batch": batch_readings,
            "delivery": "at_least_once" if AT_LEAST_ONCE in options else "exactly_once",
        },
        topics={"control": control, "events": events, "layout": "reading" if BY_READING in options else "crossing"},
        metrics={"port": 0},
    )
    service = Service(config, bootstrap)
    service.start()
    if pipeline == "bmq":
        service.wait()
        batches = progress_of(service.streaming_query)
    else:
        service.wait_until_running()
        print("running", flush=True)
        batches = follow(service.streaming_query) if pipeline == "follow" else last_batches(service.streaming_query)
    service.stop()
    return batches


def last_batches(query: StreamingQuery | None) -> list[dict[str, object]]:
    """Wait until standard input is closed and what came before it is read; return the last hundred batches.

    Unlike `follow` it asks Spark nothing meanwhile: each answer costs the JVM the texts of a hundred reports.
    """
    assert query is not None, "the query was started"
    sys.stdin.read()
    query.processAllAvailable()
    return progress_of(query)


def follow(query: StreamingQuery | None) -> list[dict[str, object]]:
    """Print each batch once, soon after its end, until standard input is closed and what came before it is read."""
    assert query is not None, "the query was started"
    closed = threading.Event()

    def wait_for_end() -> None:
        sys.stdin.read()
        closed.set()

    threading.Thread(target=wait_for_end, daemon=True).start()
    seen: dict[object, dict[str, object]] = {}
    is_last = False
    while not is_last:
        # Spark keeps the last hundred reports, of some hundred milliseconds at least, and takes a while to show them.
        is_last = closed.wait(2.0)
        if is_last:
            query.processAllAvailable()
        for batch in progress_of(query):
            if batch["started_ms"] not in seen:
                seen[batch["started_ms"]] = batch
                print(json.dumps(batch), flush=True)
    return list(seen.values())


def run_plain(pipeline: str, bootstrap: str, topic: str, batch_readings: int, folder: Path) -> list[dict[str, object]]:
    """Run what a Spark user would write, or only its source; `-tuned`: with the consumer options of the service."""
    jars = [*spark_jars(), *resolve([SPARK_KAFKA], exclude=modules_of_pyspark())]
    spark = make_session(2, {**PLAIN_SETTINGS, "spark.driver.extraClassPath": os.pathsep.join(map(str, jars))})
    records = (
        spark.readStream.format("kafka")
        .options(**(READ_OPTIONS if pipeline.endswith("-tuned") else {}))
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", batch_readings)
        .load()
    )
    if pipeline.startswith("read"):
        writer = records.writeStream.format("noop")
    else:
        writer = (
            plain_job(records)
            .writeStream.format("kafka")
            .option("kafka.bootstrap.servers", bootstrap)
            .option("topic", f"{topic}.plain")
        )
    query = writer.option("checkpointLocation", str(folder)).trigger(availableNow=True).start()
    query.awaitTermination()
    batches = progress_of(query)
    spark.stop()
    return batches


def modules_of_pyspark() -> list[str]:
    """Return the artifact names of PySpark's jars; the files are `<artifact>-<version>.jar`."""
    files = (re.match(r"(.+?)-\d", jar.name) for jar in pyspark_jars().glob("*.jar"))
    return sorted({file[1] for file in files if file})


def plain_job(records: DataFrame) -> DataFrame:
    """Return from_json, a filter that keeps 10 % of the rows, to_json."""
    fields = F.from_json(F.col("value").cast("string"), "id string, ts long, x double, y double")
    readings = records.select(fields.alias("reading")).where(F.col("reading.x") < KEPT_X_M)
    return readings.select(F.col("reading.id").alias("key"), F.to_json("reading").alias("value"))


def progress_of(query: StreamingQuery | None) -> list[dict[str, object]]:
    """Return start, rows, ms and Spark's own division of the ms, for each batch with input."""
    assert query is not None, "the query was started"
    return [
        {
            "started_ms": datetime.fromisoformat(report["timestamp"]).timestamp() * 1000,
            "rows": n_rows,
            "ms": report["durationMs"]["triggerExecution"],
            "of": report["durationMs"],
        }
        for report in query.recentProgress
        if (n_rows := _n_records(report["sources"]))
    ]


def _n_records(sources: Sequence[Mapping[str, Any]]) -> int:
    """Return the offsets that a batch moved on: the rows of the service's source are frames, and not records."""
    n_records = 0
    for source in sources:
        starts, ends = (_by_topic(source[side]) for side in ("startOffset", "endOffset"))
        for topic, partitions in ends.items():
            if " " not in topic:  # the topics' ids are beside the topics
                begin = starts.get(topic, {})
                n_records += sum(end - begin.get(partition, 0) for partition, end in partitions.items())
    return n_records


def _by_topic(offsets: Any) -> dict[str, dict[str, int]]:
    """Return topic -> partition -> offset, of a report that has a text, an object or nothing."""
    found: dict[str, dict[str, int]] = (json.loads(offsets) if isinstance(offsets, str) else offsets) or {}
    return found


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), Path(sys.argv[5]), *sys.argv[6:])
