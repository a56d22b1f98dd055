"""A real Kafka of one node, for laptops, the demo and the tests. Knows processes and files, but not Spark.

    <directory>/
      .lock               held by the broker's process as long as it lives; contains the pid
      broker.log          the broker's output since its last start
      server.properties   written at every start, because ports may change
      data/               Kafka's own files
      temporary/          libraries that the JVM unpacks; emptied at every start

Broker and controller (KRaft) share one JVM, started from the jars of `jars`, without Kafka's shell scripts.
"""

import base64
import fcntl
import logging
import os
import shutil
import subprocess
import time
import uuid
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from bmq.broker.child_process import Watched
from bmq.broker.jars import Progress, broker_jars
from bmq.broker.java import find_java
from bmq.broker.ports import HOST, free_ports, require_free
from bmq.errors import SetupError

START_LIMIT_SECONDS = 90.0  # usually 2; a loaded machine with a large data folder needs many times that.
STOP_LIMIT_SECONDS = 30.0  # usually 0.3; after that the broker is killed, which loses data in memory, not in the log.
ANSWER_LIMIT_SECONDS = 0.5  # for one request; longer would delay the check whether the process has ended.
START_TRIES = 3  # another program can take a free port before the broker binds it; twice in a row is rare.
LOG_LINES_SHOWN = 20

_TEMPORARY = "temporary"

# A small heap, because records stay in the page cache; the garbage collector that starts fastest.
JVM_OPTIONS = (
    "-Xms128m",
    "-Xmx1g",
    "-XX:+UseSerialGC",
    "-XX:+ExitOnOutOfMemoryError",
    "-XX:-UsePerfData",
    "-Djava.awt.headless=true",
    f"-Djava.io.tmpdir={_TEMPORARY}",
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd HH:mm:ss.SSS",
)

# Settings that a single node needs, and that make tests fast; the container of the tests gets the same settings.
SETTINGS = {
    "auto.create.topics.enable": "false",  # otherwise a misspelt name creates a topic, without compaction.
    "message.max.bytes": "16777216",
    "log.cleaner.enable": "true",
    "log.cleaner.dedupe.buffer.size": "16777216",  # 600,000 keys in one pass; the default takes 128 MB of heap.
    "group.initial.rebalance.delay.ms": "0",
    # One node gains nothing from fifty partitions, and has no other node for a replica.
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}

_log = logging.getLogger(__name__)


class Broker:
    """A broker with its data in a folder. It never outlives the process that started it.

    Parameters
    ----------
    directory : created if missing; a later broker in the same directory finds the topics, records and offsets again.
    port : the port for clients, on `HOST`; None: any free port, chosen at every start.
    progress : called with a line of text when Kafka's jars are downloaded.
    """

    def __init__(self, directory: Path, port: int | None = None, *, progress: Progress = _log.info) -> None:
        self.directory = directory.absolute()
        self.log_path = self.directory / "broker.log"
        self._wanted_port = port
        self._progress = progress
        self._port: int | None = None
        self._process: Watched | None = None

    @property
    def bootstrap_servers(self) -> str:
        """The address for clients; available after the start."""
        if self._port is None:
            raise RuntimeError("the broker has no address before start()")
        return f"{HOST}:{self._port}"

    @property
    def running(self) -> bool:
        """Whether the broker's process lives."""
        return self._process is not None and self._process.exit_code() is None

    def start(self) -> None:
        """Start the broker; return when it answers a client.

        1. Find Java and the jars.
        2. Lock the folder, and remove the temporary files of a broker that was killed.
        3. Give a new folder its cluster id.
        4. Start the process on free ports; if another program has taken them meanwhile, try again on others.

        Raises
        ------
        SetupError
            No Java, no jars, the folder is in use or not writable, the port is taken, or the broker ended or did not
            answer within `START_LIMIT_SECONDS`; in the last two cases the message has the end of the log.
        """
        if not self.running:
            self.stop()  # a process that ended by itself may still have its watcher
        if self._wanted_port is not None:
            require_free(self._wanted_port)
        # 1.
        jars = os.pathsep.join(str(jar) for jar in broker_jars(self._progress))
        command = [str(find_java()), *JVM_OPTIONS, "-cp", jars]
        # 2.
        with self._lock() as lock:
            shutil.rmtree(self.directory / _TEMPORARY, ignore_errors=True)
            (self.directory / _TEMPORARY).mkdir(exist_ok=True)
            # 3.
            cluster_id = self._cluster_id(command)
            # 4.
            for tries_left in reversed(range(START_TRIES)):
                self._write_properties()
                try:
                    self._launch(command, lock, cluster_id)
                except SetupError:
                    if tries_left == 0 or "Address already in use" not in self._log_text():
                        raise
                else:
                    break
        _log.info("Broker started: %s, data in %s", self.bootstrap_servers, self.directory)

    def stop(self) -> None:
        """Stop the broker cleanly, or by force after `STOP_LIMIT_SECONDS`; do nothing if it does not run."""
        if self._process is not None:
            self._process.stop(STOP_LIMIT_SECONDS)
            self._process = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _lock(self) -> IO[str]:
        """Return the folder's lock, an open file.

        The broker's process inherits the file, and the system releases the lock when the last process that holds it
        ends. So the lock shows exactly whether a broker runs. A pid file does not, because pids are reused.
        """
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            lock = (self.directory / ".lock").open("a+")
        except OSError as error:
            raise SetupError(
                f"the broker's folder {self.directory} cannot be used ({error}). Make it writable or name another."
            ) from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            lock.seek(0)
            pid = lock.read() or "that is just starting"
            lock.close()
            raise SetupError(
                f"the folder {self.directory} is in use by another broker, process {pid}. "
                "Stop that one, use it as it is, or name another folder."
            ) from error
        return lock

    def _cluster_id(self, command: list[str]) -> str:
        """Return the folder's cluster id; a separate JVM formats a new folder first (0.8 s)."""
        about = self.directory / "data" / "meta.properties"
        if not about.is_file():
            self._write_properties()
            new_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
            # With "=", because an id may begin with "-".
            tool = [*command, "kafka.tools.StorageTool", "format", f"--cluster-id={new_id}"]
            with self.log_path.open("wb") as log:
                try:
                    run = subprocess.run(
                        [*tool, "--config", "server.properties"],
                        cwd=self.directory,
                        stdin=subprocess.DEVNULL,
                        stdout=log,
                        stderr=subprocess.STDOUT,
                        timeout=START_LIMIT_SECONDS,
                    )
                except subprocess.TimeoutExpired as error:
                    raise self._failure(f"was not formatted within {START_LIMIT_SECONDS:.0f} s") from error
            if run.returncode != 0:
                raise self._failure(f"could not be formatted (exit code {run.returncode})")
        lines = (line.partition("=") for line in about.read_text().splitlines())
        # Without a cluster id, Kafka refuses the folder, and its log has the reason.
        return next((value for name, _, value in lines if name == "cluster.id"), "")

    def _write_properties(self) -> None:
        """Write the configuration with the wanted port or a free one, and a free port for the controller."""
        free = free_ports(2)
        self._port = self._wanted_port or free[0]
        addresses = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "listeners": f"BROKER://{HOST}:{self._port},CONTROLLER://{HOST}:{free[1]}",
            "listener.security.protocol.map": "BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name": "BROKER",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": f"1@{HOST}:{free[1]}",
            "log.dirs": "data",  # relative to the process's folder, because Kafka splits a path at commas.
        }
        lines = [f"{name}={value}" for name, value in {**addresses, **SETTINGS}.items()]
        (self.directory / "server.properties").write_text("\n".join(lines))

    def _launch(self, command: list[str], lock: IO[str], cluster_id: str) -> None:
        """Start the process and return when it answers; if it does not answer, stop it."""
        with self.log_path.open("wb") as log:
            self._process = Watched(
                [*command, "kafka.Kafka", "server.properties"],
                folder=self.directory,
                log=log,
                keep_open=lock.fileno(),
            )
        lock.truncate(0)
        lock.write(str(self._process.pid))
        lock.flush()
        try:
            self._wait_for_answer(self._process, cluster_id)
        except BaseException:
            self.stop()
            raise

    def _wait_for_answer(self, process: Watched, cluster_id: str) -> None:
        """Return when a client gets an answer from this broker; another one on the port has another cluster id."""
        client = AdminClient(
            {
                "bootstrap.servers": self.bootstrap_servers,
                "reconnect.backoff.ms": 50,
                "reconnect.backoff.max.ms": 100,
                "log_level": 0,  # refused connections are normal here; on stderr they would look like a fault.
            }
        )
        end = time.monotonic() + START_LIMIT_SECONDS
        while time.monotonic() < end:
            code = process.exit_code()
            if code is not None:
                raise self._failure(f"ended with exit code {code} before it answered")
            with suppress(KafkaException):
                if client.list_topics(timeout=ANSWER_LIMIT_SECONDS).cluster_id == cluster_id:
                    return
        raise self._failure(f"did not answer within {START_LIMIT_SECONDS:.0f} s")

    def _failure(self, what: str) -> SetupError:
        last = "\n".join(self._log_text().splitlines()[-LOG_LINES_SHOWN:])
        return SetupError(f"the broker in {self.directory} {what}. The end of {self.log_path}:\n{last}")

    def _log_text(self) -> str:
        return self.log_path.read_text(errors="replace")
