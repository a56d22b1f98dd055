"""Replaces the class of Spark's Kafka source that turns a record into a row, because some timestamps end Spark's own.

A record carries any 64-bit number of milliseconds as its timestamp. Spark multiplies it by a thousand and fails if the
product is longer than 64 bits. The batch would then fail at every start (docs/decisions/0012). Spark has no option for
this and allows no interceptor, so our class of the same name stands before Spark's on the class path.

Janino compiles it, once for each cache folder. Spark ships Janino for its generated code, so a user needs no Java
compiler.
"""

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

from bmq.errors import SetupError
from bmq.folders import cache_folder

_CLASS = "org.apache.spark.sql.kafka010.KafkaRecordToRowConverter"

# Spark's micro-batch reader calls this one method. The columns are those of the source without headers.
_SOURCE = """
package org.apache.spark.sql.kafka010;

import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

public class KafkaRecordToRowConverter extends scala.runtime.AbstractFunction1 {
    private static final long LIMIT_MS = Long.MAX_VALUE / 1000;
    private final scala.Function1 toUnsafeRow = UnsafeProjection.create(StructType.fromDDL(
        "key binary, value binary, topic string, partition int, offset long, timestamp timestamp, timestampType int"));

    public scala.Function1 toUnsafeRowProjector(boolean includeHeaders) {
        if (includeHeaders) throw new UnsupportedOperationException("BMQ's Kafka source reads no headers");
        return this;
    }

    public Object apply(Object read) {
        ConsumerRecord record = (ConsumerRecord) read;
        long ms = Math.max(-LIMIT_MS, Math.min(LIMIT_MS, record.timestamp()));
        return toUnsafeRow.apply(new GenericInternalRow(new Object[] {
            record.key(), record.value(), UTF8String.fromString(record.topic()), Integer.valueOf(record.partition()),
            Long.valueOf(record.offset()), Long.valueOf(ms * 1000), Integer.valueOf(record.timestampType().id)
        }));
    }
}
"""


def class_folder() -> Path:
    """Return the folder that goes to the class path before Spark's connector; create it.

    It may still be empty, but it must exist when the JVM starts: Java takes an entry that is no folder then for a jar.

    Raises
    ------
    SetupError : the folder is missing and cannot be created.
    """
    version = hashlib.sha256(f"{pyspark.__version__}{_SOURCE}".encode()).hexdigest()[:16]
    folder = cache_folder() / "classes" / version
    with _writable_cache():
        folder.mkdir(parents=True, exist_ok=True)
    return folder


def compile_class(spark: SparkSession) -> None:
    """Put the class into its folder, unless it is there; call it before the session reads from Kafka.

    Raises
    ------
    SetupError : the class is missing and the folder cannot be written.
    """
    file = class_folder() / f"{_CLASS.replace('.', '/')}.class"
    if file.exists():
        return
    jvm = spark._jvm
    assert jvm is not None, "a session with a JVM, not a remote one"
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(jvm.java.lang.Thread.currentThread().getContextClassLoader())
    compiler.cook(_SOURCE)
    # Renamed in one step, because another service may start on the same cache folder at this moment.
    half = file.with_suffix(f".{os.getpid()}")
    with _writable_cache():
        file.parent.mkdir(parents=True, exist_ok=True)
        half.write_bytes(compiler.getBytecodes()[_CLASS])
        half.replace(file)


@contextmanager
def _writable_cache() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise SetupError(
            f"the cache folder {cache_folder()} cannot be written ({error}). Make it writable or name another in "
            "BMQ_CACHE_DIR."
        ) from error
