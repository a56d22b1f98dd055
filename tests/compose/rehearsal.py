"""What a user of docker-compose.yml does, and what happens to him, with containers that run.

Each method of `Rehearsal` is a step. It fails with a sentence if something is not as the documents say. Knows the
compose file and the two doors of its Kafka; the engine is `engine.Engine`.
"""

import json
import os
import signal
import time
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import yaml
from confluent_kafka import Producer

from bmq.client import Client
from tests.brokers import wait_until
from tests.compose.engine import BUILD_LIMIT_SECONDS, Engine
from tests.compose.prometheus import ask, dashboard_expressions, values

SERVERS = "localhost:9092"
CONFIG = ("--config", "/etc/bmq/bmq.toml")
LEFT_OUT = ("grafana",)  # no registry of packages has it
VEHICLE = "v7"
SPARK_IMAGE = "bmq-spark:0.1.0"
SPARK_SUBMIT = '"$SPARK_HOME/bin/spark-submit" --version && test -r /opt/bmq/main.py'
DOWNTOWN = {"kind": "border", "feed": "vehicles", "region": {"box": {"x": [0, 10], "y": [0, 10]}}}
HEALTH_LIMIT_SECONDS = 600.0  # on busy cores a start took 200 s
HEALTH_PAUSE_SECONDS = 3.0  # each check starts a process; without a pause they would use a core
FACT_LIMIT_SECONDS = 180.0  # a command of bmq alone took up to 30 s on busy cores
LABEL = "label=io.podman.compose.project=bmq"
KINDS = {"containers": ("ps", "--all"), "networks": ("network", "ls"), "volumes": ("volume", "ls")}


class Rehearsal:
    """The containers of the compose file, and the events that they must have written until now."""

    def __init__(self, engine: Engine, project: Path) -> None:
        self._engine = engine
        self._project = project
        self._services = started(project)
        self._signs: list[str] = []
        self._event_time_ms = 0

    def build(self) -> None:
        """Build the image of the real Dockerfile, as `docker compose up --build` does.

        The name is removed before: podman-compose may end with exit code 0 after a build that was killed, and the
        image of an earlier build would pass for this one. Its layers stay, so nothing is built twice.
        """
        image = self._services["service"]["image"]
        self._engine.succeeds("untag", image, image)
        self._engine.compose("build", "service", limit_seconds=BUILD_LIMIT_SECONDS)
        assert self._engine.succeeds("image", "exists", image), f"the build made no {image}"

    def build_for_spark(self) -> None:
        """Build the image for Spark's pods upon the service's, and start it with a wrong role."""
        kubernetes = self._project / "deploy" / "kubernetes" / "spark"
        self._engine.build(SPARK_IMAGE, kubernetes / "Dockerfile", self._project / "deploy", {})
        refused = not self._engine.succeeds("run", "--rm", SPARK_IMAGE, "neither")
        assert refused, "the image for Spark's pods started with a role that there is not"
        self._engine.podman("run", "--rm", "--entrypoint", "bash", SPARK_IMAGE, "-c", SPARK_SUBMIT)

    def start(self) -> None:
        """Start the services; one that depends on another's health waits for it, as with Docker."""
        for name, service in self._services.items():
            for other in healthy_before(service):
                self.wait_for_health(other)
            self._engine.compose("up", "--detach", "--no-deps", name)
        self.wait_for_health("service")

    def put_the_query(self) -> None:
        """Put a query as docs/operations.md says."""
        printed = self._bmq("query", "put", "downtown", "-", given=json.dumps(DOWNTOWN))
        assert "accepted: downtown, version 1" in printed, printed

    def drive(self, *xs: float) -> None:
        """Send readings of one vehicle through the door for this machine."""
        producer = Producer({"bootstrap.servers": SERVERS})
        for x in xs:
            self._event_time_ms = max(self._event_time_ms + 1, time.time_ns() // 1_000_000)
            reading = {"id": VEHICLE, "ts": self._event_time_ms, "x": x, "y": 5.0}
            producer.produce("vehicles", json.dumps(reading), key=VEHICLE)
        assert producer.flush(FACT_LIMIT_SECONDS) == 0, f"Kafka at {SERVERS} does not accept readings"

    def expect(self, *signs: str) -> None:
        """Wait for further events, and compare all since the first; read them in the container and on this machine."""
        self._signs += signs
        n = len(self._signs)
        with Client(SERVERS) as client:
            here = [event.sign for event in islice(_events(client), n)]
            assert here == self._signs, f"read at {SERVERS}: {here}, expected {self._signs}"
            report = client.check_ledger(from_beginning=True)
        printed = self._bmq("events", "--from-beginning", "--json", "--limit", str(n))
        there = [json.loads(line)["sign"] for line in printed.splitlines() if line.startswith("{")]
        assert there == self._signs, f"read in the container: {there}, expected {self._signs}"
        assert report.is_whole, report.faults + report.repeats
        assert report.n_events == n, f"the topic has {report.n_events} events, expected {n}"

    def ask_prometheus(self) -> None:
        """Read the metrics through Prometheus, with each expression of the dashboard."""
        wait_until(lambda: values('up{job="bmq"}') == [1.0], "a scrape of the service", FACT_LIMIT_SECONDS)
        n = float(len(self._signs))
        wait_until(lambda: values("sum(bmq_events_total)") == [n], f"{n:.0f} events in Prometheus", FACT_LIMIT_SECONDS)
        for expression in dashboard_expressions(self._project):
            ask(expression)

    def restart(self) -> float:
        """Stop the service and start it again; return how many seconds it needed to stop."""
        begin = time.monotonic()
        self._engine.compose("stop", "service")
        seconds = time.monotonic() - begin
        code = self._inspect("service", "{{.State.ExitCode}}")
        assert code == "0", f"the service ended with exit code {code} after SIGTERM:\n{self._log('service')}"
        self._engine.compose("start", "service")
        self.wait_for_health("service")
        return seconds

    def kill(self) -> None:
        """Kill the service's own process. The engine starts the container again, because of its restart policy."""
        running = "{{.State.Pid}} {{.State.Running}}"
        first = self._inspect("service", running)
        init = int(first.split()[0])
        assert children(init), f"process {init} of the container has no child: `init` of the compose file does nothing"
        for pid in children(init):
            os.kill(pid, signal.SIGKILL)
        wait_until(
            lambda: self._inspect("service", running) not in (first, f"{init} false", "0 false"),
            "a second start of the container",
            FACT_LIMIT_SECONDS,
        )
        self.wait_for_health("service")

    def take_down(self) -> None:
        """Remove containers, networks and volumes."""
        self._engine.compose("down", "--volumes")
        # Docker also removes the volumes without a name, which an image asks for; podman-compose keeps them.
        self._engine.podman("volume", "prune", "--force")
        left = {kind: self._engine.podman(*words, "--quiet", "--filter", LABEL) for kind, words in KINDS.items()}
        assert not any(left.values()), f"`down --volumes` left {left}"

    def wait_for_health(self, name: str) -> None:
        """Return when the health check of a service passes in its container."""
        end = time.monotonic() + HEALTH_LIMIT_SECONDS
        while not self._engine.succeeds("healthcheck", "run", self._container(name)):
            if time.monotonic() > end:
                raise AssertionError(
                    f"{name} was not healthy within {HEALTH_LIMIT_SECONDS:.0f} s. Its log ends:\n{self._log(name)}"
                )
            time.sleep(HEALTH_PAUSE_SECONDS)

    def _bmq(self, *words: str, given: str | None = None) -> str:
        return self._engine.compose("exec", "-T", "service", "bmq", *words, *CONFIG, given=given)

    def _container(self, name: str) -> str:
        service = f"label=com.docker.compose.service={name}"
        found = self._engine.podman("ps", "--all", "--quiet", "--filter", LABEL, "--filter", service).split()
        assert len(found) == 1, f"{name} has {len(found)} containers"
        return found[0]

    def _inspect(self, name: str, template: str) -> str:
        return self._engine.podman("inspect", "--format", template, self._container(name)).strip()

    def _log(self, name: str) -> str:
        return self._engine.log(self._container(name))


def started(project: Path) -> dict[str, Any]:
    """Return the services of the compose file that the rehearsal starts."""
    services = yaml.safe_load((project / "docker-compose.yml").read_text())["services"]
    return {name: service for name, service in services.items() if name not in LEFT_OUT}


def published_ports(project: Path) -> list[int]:
    """Return the ports of this machine that the containers use."""
    return [int(port.split(":")[1]) for service in started(project).values() for port in service["ports"]]


def healthy_before(service: Mapping[str, Any]) -> list[str]:
    """Return the services that must be healthy before one starts."""
    needs = service.get("depends_on", {})
    return [name for name, need in needs.items() if need["condition"] == "service_healthy"]


def children(pid: int) -> list[int]:
    """Return the processes that a process has started."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _events(client: Client) -> Iterator[Any]:
    return client.events(query_id="downtown", from_beginning=True, timeout=FACT_LIMIT_SECONDS)
