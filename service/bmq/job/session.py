"""The Spark session, set up for one streaming query of frames.

Every setting here makes the pipeline faster (`bench/pipeline.py` shows the sum) or keeps something from being wrong;
anything else is Spark's default. Under spark-submit the master, memory and jars given there win.
"""

import os
import sys

from pyspark.sql import SparkSession

from bmq.broker.ivy import pyspark_version, require_pyspark
from bmq.broker.jars import spark_jars
from bmq.broker.java import find_java

# Records that a decode task hands to Python at once. The columns of so many fit into the processor's cache: 200,000
# made the whole pipeline a tenth slower. Fewer gain nothing, and each costs a frame for every shard.
ARROW_RECORDS = 20_000

# A fixed heap with a large young generation, and the collector for throughput: frames are megabytes and die within
# the batch, and G1 treats megabytes as humongous (1.4 times slower here).
HEAP = "3g"
_JAVA_OPTIONS = f"-XX:+UseParallelGC -Xms{HEAP} -Xmn2g"


def make_session(n_shards: int) -> SparkSession:
    """Return the session; starts a JVM where there is none.

    Raises
    ------
    SetupError : no usable Java, a PySpark that leaks sockets, or the connector's jars cannot be had.
    """
    find_java()
    require_pyspark(pyspark_version())
    # Workers must run this interpreter: another one would lack our packages, or have other versions of them.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    builder = SparkSession.builder.appName("bmq")
    for name, value in _settings(n_shards).items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def _settings(n_shards: int) -> dict[str, str]:
    settings = {
        # One partition a shard: job.shards gives each shard the key that leads there. It is also the number of
        # state stores, so it must not change for a checkpoint.
        "spark.sql.shuffle.partitions": str(n_shards),
        "spark.sql.execution.arrow.maxRecordsPerBatch": str(ARROW_RECORDS),
        # No limit in bytes: Spark would add up the size of every column after every row, a third of a decode task.
        "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
        "spark.sql.streaming.stateStore.providerClass": (
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        ),
        # Uploads a batch's changes instead of a snapshot of the whole RocksDB.
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        # A batch without input changes nothing here: there are no timers of Spark's.
        "spark.sql.streaming.noDataMicroBatches.enabled": "false",
        "spark.python.worker.reuse": "true",
        "spark.python.daemon.module": "bmq.job.worker_daemon",
        "spark.locality.wait": "0s",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    if not _is_submitted():
        settings |= {
            # 4: a task that fails is tried again, as on a cluster; plain local[*] ends the job at the first one.
            "spark.master": "local[*, 4]",
            # On the class path and not in `spark.jars`: SparkSubmit itself opens the local file system below.
            "spark.driver.extraClassPath": os.pathsep.join(str(jar) for jar in spark_jars()),
            "spark.driver.memory": HEAP,
            "spark.driver.extraJavaOptions": _JAVA_OPTIONS,
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            # Hadoop's local file system forks `chmod` for every file it makes; a small batch forked 119 processes.
            "spark.hadoop.fs.file.impl": "com.globalmentor.apache.hadoop.fs.BareLocalFileSystem",
            "spark.sql.streaming.checkpointFileManagerClass": (
                "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
            ),
        }
    return settings


def _is_submitted() -> bool:
    """Return whether spark-submit started this driver: then its JVM is there already and waits at this port."""
    return "PYSPARK_GATEWAY_PORT" in os.environ
