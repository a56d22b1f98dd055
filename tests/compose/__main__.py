"""Rehearse docker-compose.yml with podman, on a machine that reaches no registry of images.

    python -m tests.compose [--folder FOLDER] [--remove-images]

Makes stand-ins for the images of others (`stand_ins`), builds the real Dockerfile, starts the real compose file
without Grafana, and goes through the steps of `rehearsal`. In the end containers, networks and volumes are gone. The
images stay in the folder, so the next run is minutes shorter. docs/operations.md says what differs from Docker.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bmq.broker.ports import require_free
from bmq.errors import SetupError
from bmq.folders import cache_folder
from tests.compose.engine import BUILD_LIMIT_SECONDS, Engine, EngineError
from tests.compose.rehearsal import Rehearsal, published_ports
from tests.compose.stand_ins import make_stand_ins, wanted

PROJECT = Path(__file__).parents[2]
COMPOSE = PROJECT / ".make" / "rehearsal" / "bin" / "podman-compose"
KAFKA_TESTS = "tests/kafka/test_topics.py"  # some that need a broker and nothing else


def rehearse(engine: Engine) -> None:
    """Go through all steps; whatever happens, take everything down."""
    compose_file = (PROJECT / "docker-compose.yml").read_text()
    rehearsal = Rehearsal(engine, PROJECT)
    with step("stand-ins for the images of others"):
        make_stand_ins(engine, wanted((PROJECT / "deploy" / "Dockerfile").read_text(), compose_file))
    with step("build of deploy/Dockerfile"):
        rehearsal.build()
    with step("build of deploy/kubernetes/spark/Dockerfile"):
        rehearsal.build_for_spark()
    engine.podman("image", "prune", "--force")  # what earlier builds made, and this one does not use
    try:
        with step("start, without Grafana"):
            rehearsal.start()
        with step("query, vehicle, events"):
            rehearsal.put_the_query()
            rehearsal.drive(5.0, 7.0, 11.0)
            rehearsal.expect("+", "-")
        with step("metrics through Prometheus"):
            rehearsal.ask_prometheus()
        with step("restart of the service"):
            rehearsal.drive(5.0)
            rehearsal.expect("+")
            print(f"  stopped in {rehearsal.restart():.1f} s")
            rehearsal.drive(11.0)
            rehearsal.expect("-")
        with step("kill of the service"):
            rehearsal.drive(5.0)
            rehearsal.kill()
            rehearsal.drive(7.0, 11.0)
            rehearsal.expect("+", "-")
    finally:
        with step("end of containers, networks and volumes"):
            rehearsal.take_down()
    with step("tests with a Kafka that testcontainers starts"):
        run_kafka_tests(engine)


def run_kafka_tests(engine: Engine) -> None:
    """Run tests whose broker is a container, through the address at which podman answers as Docker does."""
    with engine.socket() as address:
        environment = {
            **engine.environment,
            "DOCKER_HOST": address,
            "BMQ_TEST_BROKER": "container",
            "TESTCONTAINERS_RYUK_DISABLED": "true",  # the image that removes what a killed test left is not here
        }
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", KAFKA_TESTS]
        ran = subprocess.run(command, cwd=PROJECT, env=environment, timeout=BUILD_LIMIT_SECONDS)
    assert ran.returncode == 0, f"{KAFKA_TESTS} failed"


@contextmanager
def step(name: str) -> Iterator[None]:
    """Print a step's name, and how long it took."""
    print(f"{name} ...", flush=True)
    begin = time.monotonic()
    yield
    print(f"{name}: {time.monotonic() - begin:.0f} s", flush=True)


def main() -> int:
    """Rehearse; return 1 if a step fails, and 2 if this machine lacks something."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=cache_folder() / "rehearsal", help="for images and containers")
    parser.add_argument("--compose", type=Path, default=COMPOSE, help="the command podman-compose")
    parser.add_argument("--remove-images", action="store_true", help="remove the folder at the end")
    arguments = parser.parse_args()
    try:
        engine = Engine(arguments.folder, PROJECT, arguments.compose)
        for port in published_ports(PROJECT):
            require_free(port)
    except SetupError as error:
        print(f"rehearsal: {error}", file=sys.stderr)
        return 2
    try:
        rehearse(engine)
    except (AssertionError, EngineError) as error:
        print(f"rehearsal: {error}", file=sys.stderr)
        return 1
    finally:
        if arguments.remove_images:
            engine.podman("rmi", "--all", "--force")
            engine.remove()
    print("The compose file runs.")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
