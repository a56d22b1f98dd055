"""The file system of a checkpoint, and the way in which Spark writes files there.

| file system | Spark's class | a file comes into its place by |
|---|---|---|
| of this machine | FileSystemBased… (`job.session` sets it) | a rename that replaces |
| s3a, if the jar spark-hadoop-cloud is there | AbortableStreamBased… | the end of its upload |
| any other, and s3a without that jar | Spark's own choice, FileContextBased… | a rename with the option to replace |

FileSystemBased… renames with `FileSystem.rename`, which HDFS and S3A refuse if the target is there. Spark takes the
refusal for success: the old content stays, and a batch that runs again would keep the state of the first try.
"""

from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from bmq.errors import ConfigError
from bmq.job.session import is_submitted

FILE_MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
ABORTABLE = "org.apache.spark.internal.io.cloud.AbortableStreamBasedCheckpointFileManager"  # of spark-hadoop-cloud
_BY_PLAIN_RENAME = "FileSystemBasedCheckpointFileManager"
_LONGEST = 300  # characters of a reason that Hadoop gives


def file_system_of(spark: SparkSession, location: str) -> Any:
    """Return Hadoop's file system for the address of a checkpoint; an address without a scheme has the default one.

    Raises
    ------
    ConfigError : Hadoop has no class for it, or the class refuses its settings.
    """
    jvm: Any = spark._jvm
    context: Any = spark._jsc
    try:
        return jvm.org.apache.hadoop.fs.Path(location).getFileSystem(context.hadoopConfiguration())
    except Py4JJavaError as error:
        raise out_of_reach(location, error) from error


def folder_of(spark: SparkSession, location: str) -> Path | None:
    """Return the folder of a checkpoint on this machine; None: it is elsewhere."""
    if file_system_of(spark, location).getUri().getScheme() != "file":
        return None
    jvm: Any = spark._jvm
    return Path(jvm.org.apache.hadoop.fs.Path(location).toUri().getPath())


def out_of_reach(location: str, error: Py4JJavaError) -> ConfigError:
    """Return the error for a checkpoint whose file system does not answer, with the innermost reason."""
    java = error.java_exception
    while java.getCause() is not None:
        java = java.getCause()
    reason = (java.getMessage() or java.getClass().getName()).partition("\n")[0][:_LONGEST].rstrip(" .")
    return ConfigError(
        f"Checkpoint {location!r} cannot be reached ({reason}). A file system other than this machine's needs its jars "
        "and settings in spark-defaults.conf, and a server that answers: docs/storage.md has them. Or set "
        "job.checkpoint to a folder of this machine."
    )


def fitting_file_manager(spark: SparkSession, location: str) -> str | None:
    """Return the class that writes files as fits the file system of a checkpoint; None: the one that Spark chooses.

    Under spark-submit a class that its options name stays.

    Raises
    ------
    ConfigError : the options of spark-submit name the class for local files, and the checkpoint is elsewhere; or Hadoop
        cannot rename there with the option to replace.
    """
    scheme = file_system_of(spark, location).getUri().getScheme()
    set_now = spark.conf.get(FILE_MANAGER, None)
    if scheme == "file":
        return set_now
    if is_submitted() and set_now is not None:
        if set_now.endswith(f".{_BY_PLAIN_RENAME}"):
            raise ConfigError(
                f"{FILE_MANAGER} is {set_now}, and on {scheme} that class keeps the old content of a file that is "
                "written again. Leave the option out: the service chooses a class that fits."
            )
        return set_now
    jvm: Any = spark._jvm
    if scheme == "s3a" and jvm.org.apache.spark.util.Utils.classIsLoadable(ABORTABLE):
        return ABORTABLE
    context: Any = spark._jsc
    try:
        jvm.org.apache.hadoop.fs.FileContext.getFileContext(
            jvm.org.apache.hadoop.fs.Path(location).toUri(), context.hadoopConfiguration()
        )
    except Py4JJavaError as error:  # Spark would go on with the plain rename, and say so in a warning
        raise ConfigError(
            f"Checkpoint {location!r} is on a file system ({scheme}) where Hadoop has no rename that replaces a file, "
            "so a batch that runs again would keep the state of its first try. Use s3a:// for S3, hdfs:// for HDFS, or "
            f"a file system with a class for fs.AbstractFileSystem.{scheme}.impl."
        ) from error
    return None


def use_file_manager(spark: SparkSession, manager: str | None) -> None:
    """Let the streaming queries that start from now on write files by a class; None: by the one that Spark chooses."""
    if manager is None:
        spark.conf.unset(FILE_MANAGER)
    else:
        spark.conf.set(FILE_MANAGER, manager)
