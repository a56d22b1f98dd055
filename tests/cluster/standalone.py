"""Spark's own standalone cluster on this machine: a master, and workers with one core each, from the installed PySpark.

    master ──► worker ──► executor ──► Python daemon, homes, writer
          └──► worker ──► executor ──► …

Each process that is started here has a session of its own, and is ended by its number. Knows no service.
"""

import json
import os
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.request import urlopen

import pyspark

from bmq.broker.ports import HOST, free_ports
from tests.brokers import wait_until
from tests.cluster.processes import Process, descendants

SPARK_HOME = Path(pyspark.__file__).parent
WORKER_MEMORY = "2g"

# Seconds. Two idle cores need 5 for a master or a worker; other helpers of a busy machine need them as well.
START_LIMIT_SECONDS = 120.0
STOP_LIMIT_SECONDS = 20.0

EXECUTOR_CLASS = "org.apache.spark.executor.CoarseGrainedExecutorBackend"
DAEMON_MODULE = "bmq.job.worker_daemon"


def spark_environment() -> dict[str, str]:
    """Return the variables that Spark's scripts and its Python processes need."""
    return {
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_SCALA_VERSION": "2.13",
        "SPARK_LOCAL_IP": HOST,
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
    }


class Worker:
    """A worker of the cluster.

    Attributes
    ----------
    files : folder of its executors' logs.
    """

    def __init__(self, process: "subprocess.Popen[bytes]", files: Path) -> None:
        self._process = process
        self.files = files

    @property
    def pid(self) -> int:
        """The process id of the worker's own JVM."""
        return self._process.pid

    def executors(self) -> list[int]:
        """Return the process ids of its executors."""
        return [process.pid for process in descendants(self._process.pid) if EXECUTOR_CLASS in process.command]

    def runs(self) -> bool:
        """Whether its process lives."""
        return self._process.poll() is None

    def kill(self) -> None:
        """End it and its executors at once, as a machine that loses power."""
        if self.runs():
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


class Cluster:
    """A master and its workers, from entering to leaving the context.

    Parameters
    ----------
    folder : of the logs and of the workers' files.
    """

    def __init__(self, folder: Path, n_workers: int) -> None:
        self._folder = folder
        self._n_workers = n_workers
        self._n_started = 0
        self._port, self._page = free_ports(2)
        self._processes = ExitStack()
        self.workers: list[Worker] = []

    @property
    def url(self) -> str:
        """The address of the master for `spark-submit`."""
        return f"spark://{HOST}:{self._port}"

    @property
    def page(self) -> str:
        """The address of the master's page."""
        return f"http://{HOST}:{self._page}"

    def worker_pages(self) -> list[str]:
        """Return the addresses of the pages of all workers that live."""
        return [worker["webuiaddress"] for worker in self._state().get("workers", ()) if worker["state"] == "ALIVE"]

    def __enter__(self) -> Self:
        with self._processes:
            self._start(
                "master", "deploy.master.Master", "--host", HOST, "--port", str(self._port),
                "--webui-port", str(self._page),
            )  # fmt: skip
            wait_until(self._state, "the master", START_LIMIT_SECONDS)
            for _ in range(self._n_workers):
                self.add_worker()
            self._wait_for_workers()
            self._processes = self._processes.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._processes.close()

    def bring_to(self, n_workers: int) -> None:
        """Start workers until as many live; return when the master knows them, and none that has ended."""
        self.workers = [worker for worker in self.workers if worker.runs()]
        while len(self.workers) < n_workers:
            self.add_worker()
        self._wait_for_workers()

    def add_worker(self) -> Worker:
        """Start one more worker; the master gives it executors as soon as it knows it."""
        name = f"worker-{self._n_started}"
        self._n_started += 1
        files = self._folder / name
        process = self._start(
            name, "deploy.worker.Worker", "--host", HOST, "--cores", "1", "--memory", WORKER_MEMORY,
            "--webui-port", "0", "--work-dir", str(files), self.url,
        )  # fmt: skip
        self.workers.append(Worker(process, files))
        return self.workers[-1]

    def executors(self) -> list[int]:
        """Return the process ids of the executors of all workers that live."""
        return sorted(pid for worker in self.workers if worker.runs() for pid in worker.executors())

    def executors_at_work(self) -> list[int]:
        """Return those executors that have a daemon of Python workers: they have had a task."""
        return [
            executor
            for executor in self.executors()
            if any(DAEMON_MODULE in process.command for process in descendants(executor))
        ]

    def daemons(self) -> list[Process]:
        """Return the daemons of Python workers of all executors, without the processes that they forked."""
        of_executors = {executor: descendants(executor) for executor in self.executors()}
        return [
            process
            for executor, processes in of_executors.items()
            for process in processes
            if process.parent == executor and DAEMON_MODULE in process.command
        ]

    def _wait_for_workers(self) -> None:
        n_running = sum(worker.runs() for worker in self.workers)
        wait_until(lambda: self._state().get("aliveworkers") == n_running, "the workers", START_LIMIT_SECONDS)

    def _state(self) -> dict[str, Any]:
        try:
            with urlopen(f"{self.page}/json/", timeout=5) as response:  # noqa: S310 - our own page
                state: dict[str, Any] = json.load(response)
        except OSError:
            return {}
        return state

    def _start(self, name: str, class_name: str, *arguments: str) -> "subprocess.Popen[bytes]":
        self._folder.mkdir(parents=True, exist_ok=True)
        with (self._folder / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                [str(SPARK_HOME / "bin" / "spark-class"), f"org.apache.spark.{class_name}", *arguments],
                stdout=log,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                # A port of the machine that nobody asks for, and that another cluster may have.
                env=os.environ | spark_environment() | {"SPARK_DAEMON_JAVA_OPTS": "-Dspark.master.rest.enabled=false"},
                start_new_session=True,
            )
        self._processes.callback(_end, process)
        return process


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End a process in order, so that a worker ends its executors; kill what is left."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(STOP_LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
