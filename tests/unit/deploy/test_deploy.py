"""The files for a container engine hold together, and their commands are those that other tests run."""

import json
import os
import re
import socket
import subprocess
import sys
import tomllib
import urllib.request
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import dockerfile
import promql_parser
import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from bmq.broker.jars import KAFKA_VERSION
from bmq.config import MetricsSection, load_config
from bmq.metrics.endpoint import Place
from bmq.metrics.metrics import Metrics

ROOT = Path(__file__).parents[3]
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
COMMANDS = dockerfile.parse_file(str(ROOT / "deploy" / "Dockerfile"))
DASHBOARD = json.loads((ROOT / "deploy" / "grafana" / "dashboards" / "bmq.json").read_text())
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


# docker-compose.yml


def test_the_compose_file_keeps_the_compose_specification() -> None:
    checked = subprocess.run(
        [
            sys.executable,
            "-m",
            "check_jsonschema",
            "--builtin-schema",
            "vendor.compose-spec",
            "docker-compose.yml",
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )

    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.parametrize("name", SERVICES)
def test_every_image_has_a_version(name: str) -> None:
    assert re.search(r":v?\d+\.\d+\.\d+$", SERVICES[name]["image"])


@pytest.mark.parametrize("name", SERVICES)
def test_ports_are_open_to_this_machine_only(name: str) -> None:
    assert [port for port in SERVICES[name]["ports"] if not port.startswith("127.0.0.1:")] == []


@pytest.mark.parametrize("name", SERVICES)
def test_every_mount_is_a_file_that_exists_or_a_volume_that_is_declared(name: str) -> None:
    for source, _ in mounts(name):
        if source.startswith("."):
            assert (ROOT / source).exists(), source
        else:
            assert source in COMPOSE["volumes"]


def test_the_broker_is_the_kafka_of_the_tests() -> None:
    assert SERVICES["broker"]["image"] == f"apache/kafka:{KAFKA_VERSION}"


def test_each_side_is_sent_back_to_the_address_that_it_can_reach() -> None:
    broker = SERVICES["broker"]["environment"]
    advertised = dict(door.split("://") for door in broker["KAFKA_ADVERTISED_LISTENERS"].split(","))
    ports = {door: address.rpartition(":")[2] for door, address in advertised.items()}
    listeners = dict(door.split("://") for door in broker["KAFKA_LISTENERS"].split(","))
    (published,) = SERVICES["broker"]["ports"]

    assert advertised["INSIDE"] == load_config(ROOT / "config" / "docker.toml").kafka.bootstrap_servers
    assert published == f"127.0.0.1:{ports['OUTSIDE']}:{ports['OUTSIDE']}"
    assert advertised["OUTSIDE"] == f"localhost:{ports['OUTSIDE']}"
    assert {door: listeners[door].removeprefix(":") for door in ports} == ports
    assert broker["KAFKA_CONTROLLER_QUORUM_VOTERS"].endswith(listeners["CONTROLLER"])


@pytest.mark.parametrize("opened", [True, False])
def test_the_broker_is_healthy_if_the_port_for_this_machine_is_open(opened: bool) -> None:
    kind, *check = SERVICES["broker"]["healthcheck"]["test"]
    port = int(SERVICES["broker"]["ports"][0].rpartition(":")[2])
    with socket.create_server(("127.0.0.1", 0)) as server:
        free = server.getsockname()[1]
        if not opened:
            server.close()
        ran = subprocess.run([word.replace(str(port), str(free)) for word in check], capture_output=True, timeout=30)

    assert kind == "CMD"
    assert str(port) in check[-1]
    assert (ran.returncode == 0) == opened


def test_the_state_outlives_the_container() -> None:
    (folder,) = [target for source, target in mounts("service") if source == "state"]

    assert load_config(ROOT / "config" / "docker.toml").job.checkpoint.startswith(f"{folder}/")


def test_the_image_reads_the_configuration_that_is_mounted() -> None:
    (command,) = [command.value for command in COMMANDS if command.cmd == "CMD"]
    (target,) = [target for source, target in mounts("service") if source == "./config/docker.toml"]

    assert command == ("serve", "--config", target)


def mounts(name: str) -> list[tuple[str, str]]:
    parts = [volume.split(":") for volume in SERVICES[name].get("volumes", [])]
    return [(part[0], part[1]) for part in parts]


# Dockerfile


def test_the_image_has_the_python_and_the_java_of_the_tests() -> None:
    (image,) = [command.value[0] for command in COMMANDS if command.cmd == "FROM"]
    python = re.fullmatch(r"python:(3\.\d+)-slim-bookworm", image)

    assert python is not None
    assert python[1] in SpecifierSet(PROJECT["requires-python"])
    assert any("openjdk-17-jre-headless" in command.original for command in COMMANDS if command.cmd == "RUN")


def test_the_image_is_built_from_what_is_not_ignored() -> None:
    kept = [line.removeprefix("!") for line in (ROOT / ".dockerignore").read_text().splitlines() if line[:1] == "!"]
    copied = [source for command in COMMANDS if command.cmd == "COPY" for source in command.value[:-1]]

    assert sorted(copied) == sorted(kept)
    assert [source for source in copied if not (ROOT / source).exists()] == []


def test_the_service_runs_as_an_ordinary_user() -> None:
    names = [command.cmd for command in COMMANDS]
    (user,) = [command.value[0] for command in COMMANDS if command.cmd == "USER"]
    warmup = next(i for i, command in enumerate(COMMANDS) if "bmq.job.warmup" in command.original)

    assert user == "bmq"
    # Compiled by the user who runs it, or numba could not write beside it.
    assert names.index("USER") < warmup < names.index("ENTRYPOINT")


def test_the_image_runs_what_the_tests_run() -> None:
    (entry,) = [command.value for command in COMMANDS if command.cmd == "ENTRYPOINT"]
    runs = " ".join(command.original for command in COMMANDS if command.cmd == "RUN")
    makefile = (ROOT / "Makefile").read_text()

    assert set(entry) <= PROJECT["scripts"].keys()
    assert 'pip install --constraint requirements.lock ".[service]"' in runs
    assert "$(BIN)/bmq serve --config $(CONFIG)" in makefile
    assert "python -m bmq.job.warmup" in runs  # tests/unit/job/test_warmup.py


@pytest.fixture
def metrics() -> Iterator[Metrics]:
    served = Metrics(Place(0), feeds=["line"])
    served.start()
    yield served
    served.stop()


@pytest.mark.parametrize(("state", "healthy"), [("running", True), ("ended", False)])
def test_the_health_check_says_whether_the_streaming_query_runs(metrics: Metrics, state: str, healthy: bool) -> None:
    (check,) = [command.value for command in COMMANDS if command.cmd == "HEALTHCHECK"]
    assert check[:3] == ("CMD", "python", "-c")
    getattr(metrics, state)()

    environment = os.environ | {"BMQ_METRICS__PORT": str(metrics.port)}
    ran = subprocess.run([sys.executable, "-c", check[3]], env=environment, capture_output=True, timeout=30)

    assert (ran.returncode == 0) == healthy


# Prometheus and Grafana


def test_prometheus_scrapes_the_port_that_the_service_serves() -> None:
    (job,) = yaml.safe_load((ROOT / "deploy" / "prometheus.yml").read_text())["scrape_configs"]
    port = load_config(ROOT / "config" / "docker.toml").metrics.port

    assert job["static_configs"] == [{"targets": [f"service:{port}"]}]
    assert port == MetricsSection().port
    assert any(command.cmd == "EXPOSE" and command.value == (str(port),) for command in COMMANDS)


def test_grafana_finds_its_source_and_its_dashboard() -> None:
    provisioning = ROOT / "deploy" / "grafana" / "provisioning"
    (source,) = yaml.safe_load((provisioning / "datasources" / "prometheus.yml").read_text())["datasources"]
    (provider,) = yaml.safe_load((provisioning / "dashboards" / "bmq.yml").read_text())["providers"]
    targets = dict(mounts("grafana"))
    home = SERVICES["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]

    assert source["url"] == "http://prometheus:9090"
    assert targets["./deploy/grafana/dashboards"] == provider["options"]["path"] == os.path.dirname(home)
    assert (ROOT / "deploy/grafana/dashboards" / os.path.basename(home)).exists()
    assert {panel["datasource"]["uid"] for panel in DASHBOARD["panels"]} == {source["uid"]}
    assert {target["datasource"]["uid"] for panel in DASHBOARD["panels"] for target in panel["targets"]} == {
        source["uid"]
    }


def test_the_panels_do_not_overlap() -> None:
    cells = [
        (x, y)
        for place in (panel["gridPos"] for panel in DASHBOARD["panels"])
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]

    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24


EXPRESSIONS = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_every_expression_is_promql_and_takes_rates_of_counters_only(expression: str, types: dict[str, str]) -> None:
    promql_parser.parse(expression.replace("$__rate_interval", "1m"))

    ranged = set(re.findall(r"(?:rate|increase)\((bmq_\w+)\[", expression))
    counters = {name for name in re.findall(r"bmq_\w+", expression) if types[name] != "gauge"}

    assert ranged == counters
    assert ("histogram_quantile" in expression) == ("_bucket" in expression)


def test_the_dashboard_shows_every_metric(types: dict[str, str]) -> None:
    shown = set(re.findall(r"bmq_\w+", " ".join(EXPRESSIONS)))

    assert families(shown) == families(types)


def test_the_operations_document_lists_every_metric(types: dict[str, str]) -> None:
    rows = re.findall(r"^\| `(bmq_\w+)", (ROOT / "docs" / "operations.md").read_text(), re.MULTILINE)

    assert sorted(rows) == sorted(families(types))


@pytest.fixture
def types(metrics: Metrics) -> dict[str, str]:
    """Every name that a scrape can hold, with its type."""
    text = urllib.request.urlopen(f"http://127.0.0.1:{metrics.port}/metrics", timeout=10).read().decode()
    declared = dict(re.findall(r"^# TYPE (bmq_\w+) (\w+)$", text, re.MULTILINE))
    parts = {
        f"{name}_{part}": "histogram"
        for name, kind in declared.items()
        if kind == "histogram"
        for part in ("bucket", "sum", "count")
    }
    return {name: kind for name, kind in declared.items() if not name.endswith("_created")} | parts


def families(names: Any) -> set[str]:
    return {re.sub(r"_(bucket|sum|count)$", "", name) for name in names}


# Makefile, lock and CI


def test_the_lock_pins_everything_that_the_project_asks_for() -> None:
    lines = [line for line in (ROOT / "requirements.lock").read_text().splitlines() if line[:1] != "#"]
    pins = {Requirement(line).name.lower(): Requirement(line).specifier for line in lines}
    asked = [*PROJECT["dependencies"], *chain.from_iterable(PROJECT["optional-dependencies"].values())]
    others = [requirement for requirement in map(Requirement, asked) if requirement.name != PROJECT["name"]]

    for requirement in others:
        (pin,) = pins[requirement.name.lower()]
        assert pin.operator == "=="
        assert pin.version in requirement.specifier, f"{requirement} against {pin}: run `make lock`"


def test_every_target_is_in_the_help() -> None:
    makefile = (ROOT / "Makefile").read_text()
    helped = subprocess.run(["make", "--no-print-directory"], cwd=ROOT, capture_output=True, text=True, check=True)

    assert re.findall(r"^  make ([a-z-]+)", helped.stdout, re.MULTILINE) == re.findall(
        r"^\.PHONY: (?!java)([a-z-]+)$", makefile, re.MULTILINE
    )


def test_without_java_make_says_one_sentence() -> None:
    environment = os.environ | {"JAVA_HOME": "/nonexistent"}
    ran = subprocess.run(["make", "java"], cwd=ROOT, env=environment, capture_output=True, text=True)

    first, *_ = ran.stderr.splitlines()
    assert ran.returncode != 0
    assert first.startswith("make: Java 17 or later is needed, found none (Debian: apt install")


def test_without_python_make_says_one_sentence(tmp_path: Path) -> None:
    old = tmp_path / "python"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)

    ran = subprocess.run(
        ["make", "install", f"PYTHON={old}", f"VENV={tmp_path}/venv"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )

    first, *_ = ran.stderr.splitlines()
    assert ran.returncode != 0
    assert first.startswith("make: Python 3.11, 3.12 or 3.13 with its venv module is needed")


def test_ci_runs_the_checks_and_the_tests() -> None:
    script = ROOT / ".ci" / "run"

    assert os.access(script, os.X_OK)
    lines = re.findall(r"^(?:\w+=\S+ )?make (.+)$", script.read_text(), re.MULTILINE)
    assert {"lint", "test", "test-nojit", "bench-pipeline"} <= {word for line in lines for word in line.split()}
    subprocess.run(["bash", "-n", script], check=True)
