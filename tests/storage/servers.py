"""Servers that keep a checkpoint elsewhere: HDFS' own mini cluster, and moto, which answers as S3 does.

Each is a process of its own, from entering to leaving the context, and listens on this machine only.
"""

import json
import os
import re
import signal
import subprocess
from abc import ABC, abstractmethod
from http import HTTPStatus
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.error import HTTPError
from urllib.request import urlopen

from pyarrow import fs

from bmq.broker.java import find_java
from bmq.broker.ports import HOST, free_ports
from tests.brokers import wait_until
from tests.storage.storage_jars import mini_cluster_class_path, s3a_jars

START_LIMIT_SECONDS = 240.0  # of the mini cluster, which needs 10 s on two idle cores
STOP_LIMIT_SECONDS = 20.0
S3_SERVER = "BMQ_TEST_S3_SERVER"  # the path of moto_server, in an environment of its own: see `make storage`
KEY = "of-a-test"
REGION = "us-east-1"


class Server(ABC):
    """A server, and the look at its files without Spark.

    Attributes
    ----------
    settings : what spark-defaults.conf needs for it.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self.log = folder / "server.log"
        self.settings: dict[str, str] = {}

    def __enter__(self) -> Self:
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command(), cwd=self._folder, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                start_new_session=True,
            )  # fmt: skip
        try:
            wait_until(self._answers_or_ended, type(self).__name__, START_LIMIT_SECONDS)
            self._has_started()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    @abstractmethod
    def uri(self, name: str) -> str:
        """Return the address of a checkpoint for Spark."""

    @abstractmethod
    def names(self, folder: str) -> list[str]:
        """Return the names in a folder, which is given as in `uri`; none if it is absent."""

    @abstractmethod
    def read(self, path: str) -> bytes:
        """Return the content of a file, whose path is given as in `uri`."""

    @abstractmethod
    def copy_to(self, folder: Path, name: str) -> None:
        """Copy a checkpoint to a folder of this machine that is not there, with all files."""

    @abstractmethod
    def _command(self) -> list[str]: ...

    @abstractmethod
    def _answers(self) -> bool: ...

    def _has_started(self) -> None:
        """Do what must be done once."""
        return

    def _answers_or_ended(self) -> bool:
        if self._process.poll() is not None:
            raise AssertionError(f"{type(self).__name__} has ended:\n{self.log.read_text(errors='replace')[-2000:]}")
        return self._answers()

    def _end(self) -> None:
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(STOP_LIMIT_SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(self._process.pid, signal.SIGKILL)
                self._process.wait()


class Hdfs(Server):
    """A name node and a data node in one JVM."""

    def uri(self, name: str) -> str:
        """Return the address of a checkpoint for Spark."""
        return f"{self._configured('fs.defaultFS')}/{name}"

    def names(self, folder: str) -> list[str]:
        """Return the names in a folder."""
        return [status["pathSuffix"] for status in self._list(folder)]

    def read(self, path: str) -> bytes:
        """Return the content of a file."""
        with urlopen(self._web(path, "OPEN"), timeout=10) as answer:  # noqa: S310 - our own server
            content: bytes = answer.read()
        return content

    def copy_to(self, folder: Path, name: str) -> None:
        """Copy a checkpoint, as `hadoop fs -get` does."""
        folder.mkdir()
        for status in self._list(name):
            inner = status["pathSuffix"]
            if status["type"] == "DIRECTORY":
                self.copy_to(folder / inner, f"{name}/{inner}")
            else:
                (folder / inner).write_bytes(self.read(f"{name}/{inner}"))

    def _list(self, folder: str) -> list[dict[str, Any]]:
        try:
            with urlopen(self._web(folder, "LISTSTATUS"), timeout=10) as answer:  # noqa: S310 - our own server
                statuses: list[dict[str, Any]] = json.load(answer)["FileStatuses"]["FileStatus"]
        except HTTPError as error:
            if error.code == HTTPStatus.NOT_FOUND:
                return []
            raise
        return statuses

    def _command(self) -> list[str]:
        return [
            str(find_java()), "-Xmx256m", f"-Dtest.build.data={self._folder / 'data'}",
            "-cp", mini_cluster_class_path(), "org.apache.hadoop.test.MiniDFSClusterManager",
            "-datanodes", "1", "-format", "-nnport", "0", "-httpport", "0",
            "-writeConfig", str(self._folder / "config.xml"), "-writeDetails", str(self._folder / "details.json"),
        ]  # fmt: skip

    def _answers(self) -> bool:
        details = self._folder / "details.json"  # written last
        return details.exists() and details.stat().st_size > 0

    def _configured(self, name: str) -> str:
        text = (self._folder / "config.xml").read_text()
        found = re.search(rf"<name>{re.escape(name)}</name>\s*<value>([^<]*)", text)
        assert found is not None, f"the mini cluster's configuration has no {name}"
        return found[1]

    def _web(self, path: str, operation: str) -> str:
        return f"http://{self._configured('dfs.namenode.http-address')}/webhdfs/v1/{path}?op={operation}"


class S3(Server):
    """moto's server, which keeps its objects in memory."""

    BUCKET = "checkpoints"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        (self._port,) = free_ports(1)
        self.settings = {
            "spark.jars": ",".join(map(str, s3a_jars())),
            "spark.hadoop.fs.s3a.endpoint": f"http://{HOST}:{self._port}",
            "spark.hadoop.fs.s3a.endpoint.region": REGION,
            "spark.hadoop.fs.s3a.access.key": KEY,
            "spark.hadoop.fs.s3a.secret.key": KEY,
            "spark.hadoop.fs.s3a.path.style.access": "true",
            # Otherwise Amazon's asynchronous client uploads files of this machine. It takes moto's `100 Continue` for
            # the whole answer, and tries without end.
            "spark.hadoop.fs.s3a.optimized.copy.from.local.enabled": "false",
        }
        self._files = fs.S3FileSystem(
            access_key=KEY, secret_key=KEY, endpoint_override=f"{HOST}:{self._port}", scheme="http", region=REGION,
            allow_bucket_creation=True,
        )  # fmt: skip

    def uri(self, name: str) -> str:
        """Return the address of a checkpoint for Spark."""
        return f"s3a://{self.BUCKET}/{name}"

    def names(self, folder: str) -> list[str]:
        """Return the names in a folder."""
        selector = fs.FileSelector(f"{self.BUCKET}/{folder}", allow_not_found=True)
        return [file.base_name for file in self._files.get_file_info(selector)]

    def read(self, path: str) -> bytes:
        """Return the content of a file."""
        with self._files.open_input_stream(f"{self.BUCKET}/{path}") as stream:
            content: bytes = stream.read()
        return content

    def copy_to(self, folder: Path, name: str) -> None:
        """Copy a checkpoint, as `aws s3 sync` does."""
        fs.copy_files(f"{self.BUCKET}/{name}", str(folder), source_filesystem=self._files)

    def make_bucket(self, name: str) -> None:
        """Make one more bucket."""
        self._files.create_dir(name)

    def requests(self) -> int:
        """Return how many requests it has answered."""
        return self.log.read_bytes().count(b"HTTP/1.1")

    def _command(self) -> list[str]:
        return [os.environ[S3_SERVER], "-H", HOST, "-p", str(self._port)]

    def _answers(self) -> bool:
        try:
            with urlopen(f"http://{HOST}:{self._port}/moto-api/", timeout=5):
                return True
        except OSError:
            return False

    def _has_started(self) -> None:
        self.make_bucket(self.BUCKET)
