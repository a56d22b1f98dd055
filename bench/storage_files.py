"""What one file of a checkpoint costs on this machine, on HDFS and on S3, by each of Spark's ways to write it.

    BMQ_TEST_S3_SERVER=.make/storage/bin/moto_server python -m bench.storage_files

Claim: on S3, an upload takes less than a third of the requests of a rename. A JVM without Spark's session writes a file
of 10 kB with each class in turn, FILES times, and the content is read back. HDFS is Hadoop's mini cluster, S3 is moto's
server, both on this machine.
"""

import os
import statistics
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import typer
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from bmq.broker.ivy import pyspark_jars
from bmq.broker.jars import spark_jars
from bmq.job.checkpoint_place import ABORTABLE
from tests.storage.servers import S3, Hdfs

LEAN_BUCKET = "lean"
N_BYTES = 10_000
CHECKPOINTING = "org.apache.spark.sql.execution.streaming.checkpointing."
PLAIN_RENAME, RENAME = (f"{CHECKPOINTING}{name}BasedCheckpointFileManager" for name in ("FileSystem", "FileContext"))


def main(files: int = 30) -> None:
    """Write the files, compare their content, and print a line for each place and class."""
    with tempfile.TemporaryDirectory(prefix="bmq-bench-") as name, ExitStack() as stack:
        folder = Path(name)
        hdfs, s3 = stack.enter_context(Hdfs(folder / "hdfs")), stack.enter_context(S3(folder / "s3"))
        s3.make_bucket(LEAN_BUCKET)
        jars = [f"{pyspark_jars()}/*", *map(str, spark_jars()), *s3.settings["spark.jars"].split(",")]
        quiet = (folder / "jvm.log").open("w")
        port = launch_gateway(
            classpath=":".join(jars), die_on_exit=True, javaopts=["-Xmx512m"],
            redirect_stdout=quiet, redirect_stderr=quiet,
        )  # fmt: skip
        jvm: Any = JavaGateway(gateway_parameters=GatewayParameters(port=port)).jvm
        conf = jvm.org.apache.hadoop.conf.Configuration()
        conf.set("fs.file.impl", "com.globalmentor.apache.hadoop.fs.BareLocalFileSystem")
        conf.set(f"fs.s3a.bucket.{LEAN_BUCKET}.performance.flags", "create,mkdir")
        for setting, value in s3.settings.items():
            if setting.startswith("spark.hadoop."):
                conf.set(setting.removeprefix("spark.hadoop."), value)
        places = {
            "here, rename": (f"file://{folder}/here", PLAIN_RENAME),
            "hdfs, rename": (hdfs.uri("files"), RENAME),
            "s3a, rename": (s3.uri("rename"), RENAME),
            "s3a, upload": (s3.uri("upload"), ABORTABLE),
            "s3a, upload with flags": (f"s3a://{LEAN_BUCKET}/upload", ABORTABLE),
        }
        seconds: dict[str, list[float]] = {place: [] for place in places}
        requests: dict[str, list[int]] = {place: [] for place in places}
        managers = {place: _manager(jvm, conf, *where) for place, where in places.items()}
        content = os.urandom(N_BYTES)
        for number in range(files + 1):
            for place, (address, _) in places.items():
                asked, begin = s3.requests(), time.monotonic()
                path = jvm.org.apache.hadoop.fs.Path(address, str(number))
                stream = managers[place].createAtomic(path, True)
                stream.write(content)
                stream.close()
                if number:  # the first one loads classes and opens connections
                    seconds[place].append(time.monotonic() - begin)
                    requests[place].append(s3.requests() - asked)
                _check(jvm, managers[place], path, content)
        print(f"load average {os.getloadavg()[1]:.1f}, {files} files of {N_BYTES} bytes each")
        for place, times in seconds.items():
            low, median, high = min(times) * 1e3, statistics.median(times) * 1e3, max(times) * 1e3
            print(f"{place:<24} ms={low:.1f}/{median:.1f}/{high:.1f} requests={statistics.median(requests[place]):.0f}")


def _manager(jvm: Any, conf: Any, address: str, name: str) -> Any:
    path = jvm.org.apache.hadoop.fs.Path(address)
    manager = jvm.java.lang.Class.forName(name).getConstructors()[0].newInstance(_array(jvm, path, conf))
    manager.mkdirs(path)
    return manager


def _array(jvm: Any, *items: Any) -> Any:
    array = jvm.java.lang.reflect.Array.newInstance(jvm.java.lang.Class.forName("java.lang.Object"), len(items))
    for number, item in enumerate(items):
        array[number] = item
    return array


def _check(jvm: Any, manager: Any, path: Any, content: bytes) -> None:
    stream = manager.open(path)
    try:
        if bytes(jvm.org.apache.commons.io.IOUtils.toByteArray(stream)) != content:
            raise AssertionError(f"{path} has other content than was written")
    finally:
        stream.close()


if __name__ == "__main__":
    typer.run(main)
