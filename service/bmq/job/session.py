"""The Spark session, set up for one streaming query of frames.

Every setting here makes the pipeline faster (`bench/pipeline.py` measures the total) or prevents an error; everything
else is Spark's default. Under spark-submit its master, memory and jars take precedence.
"""

import atexit
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import MappingProxyType

import pyspark
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from bmq.broker.ivy import require_pyspark
from bmq.broker.jars import spark_jars
from bmq.broker.java import find_java
from bmq.job.class_archive import archive_options
from bmq.job.jvm_log import JvmLog
from bmq.job.run_folder import RunFolder
from bmq.job.spark_home import spark_home_set
from bmq.owned_process import socket_folder

# Records that a decode task passes to Python at once. The columns of this many fit into the processor's cache: 200,000
# made the whole pipeline a tenth slower. Fewer gain nothing, and each Arrow batch costs a frame for every shard.
ARROW_RECORDS = 20_000

# A fixed heap with a large young generation, and the collector for throughput: frames have megabytes and live no longer
# than the batch, and G1 treats objects of megabytes as humongous (1.4 times slower here).
HEAP = "3g"
MEMORY_OPTIONS = f"-XX:+UseParallelGC -Xms{HEAP} -Xmn2g"

LOG_END_SECONDS = 1.0  # for the last lines of the JVM
JVM_END_SECONDS = 10.0  # for its hooks at the end, which usually take a tenth of a second

# The JVM carries frames, and kernels do the work. So it has only its quick compiler: the optimising one kept a core
# busy through the first minutes. Log4j's context for each class loader would walk the stack for each new logger.
_JAVA_OPTIONS = (
    f"{MEMORY_OPTIONS} -XX:TieredStopAtLevel=1 "
    "-Dlog4j2.contextSelector=org.apache.logging.log4j.core.selector.BasicContextSelector"
)


def make_session(
    n_shards: int, replaced: Mapping[str, str] = MappingProxyType({}), n_workers: int | None = None
) -> SparkSession:
    """Return the session; start a JVM unless one runs already.

    Parameters
    ----------
    replaced : settings that replace those of the service.
    n_workers : how many tasks run at once; None: one for each core. Under spark-submit its own options decide.

    Raises
    ------
    SetupError : no usable Java, a PySpark that leaks sockets, or a jar is not available.
    """
    find_java()
    require_pyspark(pyspark.__version__)  # under spark-submit it may be another one than pip installed
    # Workers must run this interpreter: another one would lack the service's packages, or have other versions of them.
    # Under spark-submit the nodes may have another one, and what it lacks in an archive.
    if not (is_submitted() and "PYSPARK_PYTHON" in os.environ):
        os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    settings = {"spark.app.name": "bmq", **_settings(n_shards, n_workers), **replaced}
    if _jvm() is None and not is_submitted():
        _start_jvm(SparkConf().setAll(list(settings.items())))
    session = SparkSession.builder.config(map=dict(settings)).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def start_worker_daemons(session: SparkSession, n_executors: int = 1) -> None:
    """Run a task in a Python worker of each executor, so that the daemons start now and not in the middle of a batch.

    Spark deals the tasks out to all executors that have a free core. A daemon takes seconds to start, so no executor
    has done two of them before the others have one.
    """
    n_tasks = 1 if n_executors == 1 else max(n_executors, session.sparkContext.defaultParallelism)
    session.range(0, n_tasks, numPartitions=n_tasks).mapInArrow(lambda batches: batches, "id long").collect()


def end_jvm() -> None:
    """Kill Spark's JVM; under spark-submit, whose JVM is not ours, end this process instead."""
    process = _jvm()
    if process is None:
        os._exit(1)
    process.kill()


def temporary_folder() -> Path:
    """Return the folder for this run's temporary files; the process removes it when it ends."""
    return _run_folder(tempfile.gettempdir()).path


def java_options() -> str:
    """Return the options of Spark's JVM, without those of the archive of classes."""
    return f'{_JAVA_OPTIONS} "-Djava.io.tmpdir={temporary_folder()}"'


def _settings(n_shards: int, n_workers: int | None) -> dict[str, str]:
    settings = {
        # One partition for each shard: `job.shards` gives each shard the key that Spark sends to this partition. It is
        # also the number of state stores, so it must not change for a checkpoint.
        "spark.sql.shuffle.partitions": str(n_shards),
        "spark.sql.execution.arrow.maxRecordsPerBatch": str(ARROW_RECORDS),
        # No limit in bytes: Spark would sum the sizes of all columns after every row, a third of a decode task's time.
        "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
        "spark.sql.streaming.stateStore.providerClass": (
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        ),
        # Upload the changes of a batch instead of a snapshot of the whole RocksDB.
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        # The operator uses no Spark timers, so a batch without input would change nothing.
        "spark.sql.streaming.noDataMicroBatches.enabled": "false",
        "spark.python.worker.reuse": "true",
        # A batch has some dozen rows. To generate code for them, and to look it up in each task, takes longer than to
        # interpret their expressions.
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.python.daemon.module": "bmq.job.worker_daemon",
        # Spark sets it for `mapInArrow` only, and starts a daemon for each set of workers whose environments differ.
        # Without it, decode tasks and shards share one daemon and its workers, and the kernels are loaded once.
        "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false",
        "spark.locality.wait": "0s",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    if not is_submitted():
        settings |= {
            # 4 attempts for a task, as on a cluster; plain local[*] ends the job at the first failure.
            "spark.master": f"local[{n_workers or '*'}, 4]",
            # On the class path and not in `spark.jars`, because SparkSubmit itself opens the local file system below.
            "spark.driver.extraClassPath": os.pathsep.join(map(str, spark_jars())),
            "spark.driver.memory": HEAP,
            # Spark's own folders are there, and what RocksDB and others unpack and leave if they are killed.
            "spark.driver.extraJavaOptions": f"{java_options()} {archive_options()}".rstrip(),
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            # Over TCP, each task waits 40 ms between its command and its rows, and again for each small answer about
            # its state: the sockets have Nagle's algorithm on.
            "spark.python.unix.domain.socket.enabled": "true",
            # Only this user can open it: the sockets ask for no password.
            "spark.python.unix.domain.socket.dir": str(_run_folder(socket_folder()).path),
            # Hadoop's local file system forks `chmod` for every new file; a small batch forked 119 processes.
            "spark.hadoop.fs.file.impl": "com.globalmentor.apache.hadoop.fs.BareLocalFileSystem",
            "spark.sql.streaming.checkpointFileManagerClass": (
                "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
            ),
        }
    return settings


def _start_jvm(conf: SparkConf) -> None:
    """Start the JVM and its context. What it prints comes into the service's log."""
    log = _jvm_log()
    try:
        with spark_home_set():
            gateway = launch_gateway(conf, {"stderr": log.write_end})  # type: ignore[no-untyped-call]
    except Exception:
        log.close_write_end()
        log.join(JVM_END_SECONDS)
        _jvm_log.cache_clear()  # another try needs another pipe
        raise
    log.close_write_end()
    SparkContext(conf=conf, gateway=gateway)


@cache
def _jvm_log() -> JvmLog:
    return JvmLog()


@cache
def _run_folder(parent: str) -> RunFolder:
    folder = RunFolder(parent)
    atexit.register(_leave, folder)
    return folder


def _leave(folder: RunFolder) -> None:
    """End the JVM, which uses the folder to its end, then remove the folder."""
    process = _jvm()
    if process is not None and process.stdin is not None:
        _jvm_log().mute()
        process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            process.wait(JVM_END_SECONDS)
            _jvm_log().join(LOG_END_SECONDS)
    folder.leave()


def _jvm() -> "subprocess.Popen[bytes] | None":
    return getattr(SparkContext._gateway, "proc", None)  # noqa: SLF001 - PySpark has no other way to it


def is_submitted() -> bool:
    """Return whether spark-submit started this driver: then its JVM runs already and listens at this port."""
    return "PYSPARK_GATEWAY_PORT" in os.environ
