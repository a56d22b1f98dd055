"""The class before Spark's own: it reads the same columns, and limits the timestamps that Spark's cannot read."""

import shutil
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from py4j.java_gateway import JavaObject
from pyspark.sql import SparkSession

from bmq.job import record_rows
from bmq.job.session import make_session
from tests.wild_records import SPARKS_LIMIT_MS, TIMESTAMPS

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    with pytest.MonkeyPatch.context() as patch:
        # Another text has another folder, so that the session compiles the class as at the first start.
        patch.setattr(record_rows, "_SOURCE", f"{record_rows._SOURCE}// {uuid.uuid4().hex}\n")
        session = make_session(1)
        yield session
        session.stop()
        shutil.rmtree(record_rows.class_folder())


@pytest.fixture
def convert(spark: SparkSession) -> Any:
    """Return the function from a Kafka record of the JVM to Spark's row."""
    jvm = spark._jvm
    assert jvm is not None
    converter = jvm.org.apache.spark.sql.kafka010.KafkaRecordToRowConverter()
    return converter.toUnsafeRowProjector(False).apply


def record(spark: SparkSession, timestamp: int, key: bytes | None, value: bytes | None) -> JavaObject:
    jvm = spark._jvm
    assert jvm is not None
    kafka = jvm.org.apache.kafka
    created = kafka.common.record.TimestampType.CREATE_TIME
    headers, no_epoch = kafka.common.header.internals.RecordHeaders(), jvm.java.util.Optional.empty()
    return kafka.clients.consumer.ConsumerRecord("topic", 3, 7, timestamp, created, 0, 0, key, value, headers, no_epoch)


def test_the_class_of_the_session_is_ours(spark: SparkSession) -> None:
    jvm = spark._jvm
    assert jvm is not None
    name = "org.apache.spark.sql.kafka010.KafkaRecordToRowConverter"
    loaded = jvm.java.lang.Class.forName(name).getProtectionDomain().getCodeSource().getLocation().getPath()

    assert loaded.rstrip("/") == str(record_rows.class_folder())


@pytest.mark.parametrize("timestamp", TIMESTAMPS)
def test_a_timestamp_is_kept_up_to_the_limit(spark: SparkSession, convert: Any, timestamp: int) -> None:
    row = convert(record(spark, timestamp, b"k", b"v"))

    assert row.getLong(5) == min(max(timestamp, -SPARKS_LIMIT_MS), SPARKS_LIMIT_MS) * 1000


@pytest.mark.parametrize(("key", "value"), [(b"k", b"\xff\0"), (None, b""), (b"", None)])
def test_the_other_columns_are_those_of_the_record(
    spark: SparkSession, convert: Any, key: bytes | None, value: bytes | None
) -> None:
    row = convert(record(spark, 1, key, value))

    assert [row.getBinary(0), row.getBinary(1)] == [key, value]
    assert (row.getUTF8String(2).toString(), row.getInt(3), row.getLong(4), row.getInt(6)) == ("topic", 3, 7, 0)
