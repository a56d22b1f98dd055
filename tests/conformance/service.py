"""The service as a process of its own: configured for scenarios, ended by signals, started again.

Knows the configuration's format, the process and its checkpoint. Knows no Kafka client.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from bmq.config import load_config
from bmq.conformance.scenario import ATTRIBUTE, Json
from bmq.errors import ConfigError

# Seconds. On two idle cores a start takes 20, of which Spark's JVM is most, and a batch one or two. On cores
# that others use as well, a start has taken 80, and the end of a batch of 600 feeds more than 60.
SETTLE_LIMIT_SECONDS = 480.0
STOP_LIMIT_SECONDS = 240.0
POLL_SECONDS = 0.05  # a tenth of a small batch: waiting adds little to what is waited for

LOG_LINES_SHOWN = 60


class ServiceFailed(Exception):
    """The service did not do what every scenario needs; the message ends with its log."""


def topic_names(run: str) -> dict[str, str]:
    """Return the service's own topics, each with a name of this run, as `[topics]` has them."""
    return {role: f"{run}-{role}" for role in ("control", "replies", "events", "dead_letter", "clock")}


def write_config(
    folder: Path, run: str, bootstrap_servers: str, feeds: Mapping[str, Json], checkpoint: str | None = None
) -> tuple[Path, set[str]]:
    """Write a configuration with every feed that this version can serve; return it and their names.

    A feed with an option of a later version is left out, since it would stop the service for all others. Its
    queries are then refused as `unknown_feed`, so that its scenarios fail in sight.
    """
    path = folder / "conformance.toml"
    served = {name: options for name, options in feeds.items() if _can_serve(folder, name, options)}
    tables: dict[str, Json] = {
        "kafka": {"bootstrap_servers": bootstrap_servers},
        "topics": {**topic_names(run), "allowed_output_prefix": f"{run}-"},
        **{f"feeds.{name}": _feed_table(f"{run}-{name}", options) for name, options in served.items()},
        "job": {"checkpoint": checkpoint or str(folder / "checkpoint"), "shards": 2, "starting_offsets": "earliest"},
        "metrics": {"port": 0},
    }
    path.write_text(toml_text(tables), encoding="utf-8")
    load_config(path)
    return path, set(served)


def _can_serve(folder: Path, name: str, options: Json) -> bool:
    probe = folder / "probe.toml"
    probe.write_text(toml_text({f"feeds.{name}": _feed_table(name, options)}), encoding="utf-8")
    try:
        load_config(probe)
    except ConfigError:
        return False
    return True


def _feed_table(topic: str, options: Json) -> Json:
    of_topic = {} if "topics" in options else {"topic": topic}
    return {**of_topic, "stream_id": "id", "event_time": "ts", "attributes": [ATTRIBUTE], **options}


def toml_text(tables: Mapping[str, Json]) -> str:
    """Return a configuration of tables of texts, numbers, booleans and lists."""
    # JSON's texts, lists, numbers and booleans are TOML's too.
    return "".join(
        f"[{name}]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in table.items())
        for name, table in tables.items()
    )


class Service:
    """`bmq serve` as a child, with its log beside the configuration.

    Parameters
    ----------
    environment : variables over those of this process.
    """

    def __init__(self, config: Path, environment: Mapping[str, str] = MappingProxyType({})) -> None:
        self._config = config
        self._environment = dict(environment)
        self._log = config.with_name("service.log")
        self._checkpoint = config.with_name("checkpoint")
        self._last_batch = -1
        self._reached: dict[str, int] = {}  # of the last batch
        self._process = self._start()

    @property
    def pid(self) -> int:
        """The process id of `bmq serve`."""
        return self._process.pid

    @property
    def checkpoint(self) -> Path:
        """The folder of the checkpoint."""
        return self._checkpoint

    @property
    def exit_code(self) -> int:
        """How the service's process ended; negative: by that signal."""
        code = self._process.poll()
        assert code is not None, "the service still runs"
        return code

    def runs(self) -> bool:
        """Whether the service's process lives."""
        return self._process.poll() is None

    def restart(self, how: str) -> None:
        """End the service by "kill" (SIGKILL) or "stop" (SIGTERM), and start it on the same checkpoint."""
        if how == "kill":
            self.kill()
        else:
            self.stop()
        self._process = self._start()

    def kill(self) -> None:
        """End the service and its JVM at once, as a machine that loses power would."""
        if self._process.poll() is None:
            # Its own session: the group is the service and what it started, and nothing else.
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def stop(self) -> None:
        """End the service by SIGTERM; it must finish its batch and exit with 0."""
        self._process.terminate()
        self.must_end()

    def must_end(self) -> None:
        """Wait for the end after SIGTERM; it must come in time, with exit code 0."""
        try:
            code = self._process.wait(STOP_LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            raise self.failed(f"the service was still there {STOP_LIMIT_SECONDS:.0f} s after SIGTERM") from None
        if code != 0:
            raise self.failed(f"the service exited with {code} after SIGTERM, expected 0")

    def wait_for(self, end_offsets: Mapping[str, int]) -> None:
        """Wait until a finished batch has read each topic up to its end offset.

        The checkpoint says so itself: it is what the service would start from after a crash at this moment.
        """
        deadline = time.monotonic() + SETTLE_LIMIT_SECONDS
        while True:
            behind = self._behind(end_offsets)
            if not behind:
                return
            if time.monotonic() > deadline:
                limit = f"{SETTLE_LIMIT_SECONDS:.0f} s"
                raise self.failed(f"after {limit} the service is behind: {behind} (topic: (reached, end))")
            self._must_live_on(POLL_SECONDS)

    def has_read(self, end_offsets: Mapping[str, int]) -> bool:
        """Whether a finished batch has read each topic up to its end offset."""
        return not self._behind(end_offsets)

    def failed(self, what: str) -> ServiceFailed:
        """Return the error that says what failed, with the end of the service's log."""
        lines = self._log.read_text(encoding="utf-8", errors="replace").splitlines()[-LOG_LINES_SHOWN:]
        return ServiceFailed("\n".join([what, f"--- end of {self._log.name} ---", *lines]))

    def _start(self) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as log:
            return subprocess.Popen(
                self._command(),
                stdout=log,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                env=os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)} | self._environment,
                start_new_session=True,
            )

    def _command(self) -> list[str]:
        return [sys.executable, "-m", "bmq.cli", "serve", "--config", str(self._config)]

    def _behind(self, end_offsets: Mapping[str, int]) -> dict[str, tuple[int, int]]:
        reached = self._committed_offsets()
        return {
            topic: (reached.get(topic, 0), end) for topic, end in end_offsets.items() if reached.get(topic, 0) < end
        }

    def _must_live_on(self, seconds: float) -> None:
        try:
            code = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return
        raise self.failed(f"the service ended by itself with exit code {code}")

    def _committed_offsets(self) -> dict[str, int]:
        """Return topic -> next offset of partition 0 after the last finished batch.

        A batch's file in `offsets` holds a line of JSON for each source; its file in `commits` is there once
        everything was written.
        """
        commits = self.batches_in("commits")
        if not commits:
            return {}
        # With some hundred topics it takes milliseconds to read, and somebody asks every few of them.
        if max(commits) != self._last_batch:
            self._last_batch = max(commits)
            self._reached = _offsets_of(self.offsets_text(self._last_batch))
        return self._reached

    def batches_in(self, folder: str) -> list[int]:
        """Return the numbers of the batches that have a file in `offsets` or `commits`, in no order."""
        return [int(file.name) for file in self._checkpoint.glob(f"{folder}/*") if file.name.isdecimal()]

    def offsets_text(self, batch: int) -> str:
        """Return the content of a batch's file in `offsets`."""
        return (self._checkpoint / "offsets" / str(batch)).read_text(encoding="utf-8")


def _offsets_of(text: str) -> dict[str, int]:
    reached: dict[str, int] = {}
    for line in text.splitlines():
        if line.startswith("{"):
            by_topic = json.loads(line)
            reached |= {topic: ends["0"] for topic, ends in by_topic.items() if _has_partition_0(ends)}
    return reached


def _has_partition_0(ends: object) -> bool:
    return isinstance(ends, dict) and "0" in ends  # the line of metadata holds other things
