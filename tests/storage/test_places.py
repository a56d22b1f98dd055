"""What Spark's JVM does with the files of a checkpoint that is elsewhere, and with a place that it cannot reach."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from bmq.broker.ports import HOST, free_ports
from bmq.errors import ConfigError
from bmq.job.checkpoint import CheckpointFolder, Origin
from bmq.job.checkpoint_place import ABORTABLE, FILE_MANAGER, fitting_file_manager, use_file_manager
from bmq.job.session import make_session
from tests.storage.remote_service import write_defaults
from tests.storage.servers import S3, Server

pytestmark = [pytest.mark.storage, pytest.mark.timeout(600)]

ORIGIN = Origin(shards=2, start_offsets={}, control_end=0, feeds={}, delivery_id="bmq-1")


@pytest.fixture(scope="module")
def spark(s3: S3, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session with the settings of a user of s3a; one bucket is where no server listens."""
    folder = tmp_path_factory.mktemp("spark-conf")
    (silent,) = free_ports(1)
    gone = {"endpoint": f"http://{HOST}:{silent}", "attempts.maximum": "1", "retry.limit": "0"}
    of_s3 = {"spark.hadoop.fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem"}  # as many set it, for old addresses
    of_gone = {f"spark.hadoop.fs.s3a.bucket.gone.{name}": value for name, value in gone.items()}
    write_defaults(folder, s3.settings | of_s3 | of_gone)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_CONF_DIR", str(folder))
        session = make_session(2)
    yield session
    session.stop()


@pytest.fixture
def usual(spark: SparkSession) -> Iterator[str]:
    """The class of files on this machine, which is there again after the test."""
    usual = spark.conf.get(FILE_MANAGER)
    assert usual is not None
    yield usual
    spark.conf.set(FILE_MANAGER, usual)


def written_twice(spark: SparkSession, folder: str) -> str:
    """Let Spark write a file of the checkpoint twice, as after a kill; return the content."""
    jvm: Any = spark._jvm
    session: Any = spark._jsparkSession
    path = jvm.org.apache.hadoop.fs.Path(folder)
    files = jvm.org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager.create(
        path, session.sessionState().newHadoopConf()
    )
    files.mkdirs(path)
    file = jvm.org.apache.hadoop.fs.Path(folder, "1")
    for content in (b"first", b"second"):
        stream = files.createAtomic(file, True)
        stream.write(content)
        stream.close()
    stream = files.open(file)
    try:
        return str(jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
    finally:
        stream.close()


def test_a_file_that_is_written_again_has_its_new_content(spark: SparkSession, usual: str, server: Server) -> None:
    use_file_manager(spark, fitting_file_manager(spark, server.uri("fitting")))

    assert written_twice(spark, server.uri("fitting")) == "second"


def test_the_class_for_this_machine_keeps_the_old_content(spark: SparkSession, usual: str, server: Server) -> None:
    """The reason for `fitting_file_manager`: if Spark mends it, that function may go."""
    assert written_twice(spark, server.uri("usual")) == "first"


def test_a_checkpoint_of_this_machine_keeps_its_class(spark: SparkSession, usual: str, tmp_path: Path) -> None:
    assert fitting_file_manager(spark, str(tmp_path)) == usual
    assert fitting_file_manager(spark, tmp_path.as_uri()) == usual


def test_s3a_uploads_in_place_of_a_rename(spark: SparkSession, usual: str, s3: S3) -> None:
    assert fitting_file_manager(spark, s3.uri("any")) == ABORTABLE


def test_spark_submit_may_not_choose_the_class_for_this_machine(
    spark: SparkSession, usual: str, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")  # as spark-submit sets it

    with pytest.raises(ConfigError, match=r"keeps the old content .* Leave the option out"):
        fitting_file_manager(spark, server.uri("any"))


def test_a_file_system_without_a_rename_that_replaces_is_refused(spark: SparkSession, usual: str, s3: S3) -> None:
    location = s3.uri("any").replace("s3a://", "s3://")

    with pytest.raises(ConfigError, match=rf"'{location}' is on a file system \(s3\) .* Use s3a:// for S3"):
        fitting_file_manager(spark, location)


def test_a_class_that_spark_submit_chooses_stays(
    spark: SparkSession, usual: str, s3: S3, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = usual.replace("FileSystemBased", "FileContextBased")
    spark.conf.set(FILE_MANAGER, chosen)
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")

    assert fitting_file_manager(spark, s3.uri("any")) == chosen


def test_the_binding_is_read_back(spark: SparkSession, server: Server) -> None:
    folder = CheckpointFolder(spark, server.uri("bound"))
    assert folder.read() is None

    folder.write(ORIGIN)
    folder.write(ORIGIN)

    assert CheckpointFolder(spark, server.uri("bound")).read() == ORIGIN
    assert server.names("bound") == ["bmq.json"]


@pytest.mark.parametrize(
    ("location", "reason"),
    [
        ("nowhere://bucket/checkpoint", 'No FileSystem for scheme "nowhere"'),
        ("s3a://gone/checkpoint", "refused"),
        ("s3a://no-such-bucket/checkpoint", "bucket does not exist"),
    ],
)
def test_a_place_that_cannot_be_reached_is_refused(spark: SparkSession, location: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=rf"{location}' cannot be reached \(.*({reason}).*docs/storage.md"):
        CheckpointFolder(spark, location).read()
