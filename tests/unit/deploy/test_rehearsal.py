"""What the rehearsal of the compose file reads from it and from the Dockerfile, without a container engine."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

from bmq.errors import SetupError
from tests.compose.engine import PACKAGES, Engine, missing, settings, variables
from tests.compose.prometheus import dashboard_expressions
from tests.compose.rehearsal import LEFT_OUT, healthy_before, published_ports, started
from tests.compose.stand_ins import FILES, HERE, full_name, pip_settings, wanted

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[3]
COMPOSE = (ROOT / "docker-compose.yml").read_text()
SERVICES = yaml.safe_load(COMPOSE)["services"]


def test_each_image_of_others_has_a_stand_in_except_those_that_are_left_out() -> None:
    images = wanted((ROOT / "deploy" / "Dockerfile").read_text(), COMPOSE)
    left_out = {SERVICES[name]["image"] for name in LEFT_OUT}
    of_others = {service["image"] for service in SERVICES.values() if "build" not in service}

    assert images == {
        "python:3.11-slim-bookworm": "python.Dockerfile",
        SERVICES["broker"]["image"]: "kafka.Dockerfile",
        SERVICES["prometheus"]["image"]: "prometheus.Dockerfile",
    }
    assert of_others - images.keys() == left_out


@pytest.mark.parametrize(
    ("image", "stored"),
    [("python:3.11", "docker.io/library/python:3.11"), ("apache/kafka:4.3.1", "docker.io/apache/kafka:4.3.1")],
)
def test_an_image_has_the_name_under_which_docker_would_fetch_it(image: str, stored: str) -> None:
    assert full_name(image) == stored


def test_each_file_of_a_stand_in_copies_what_is_there() -> None:
    made = {"rootfs.tar", "authorities/", "libs/", "pip.conf", "kafka-run"}
    files = [*FILES.values(), "debian.Dockerfile"]
    copied = {
        source
        for file in files
        for source in re.findall(r"^(?:COPY|ADD) (\S+) \S+$", (HERE / file).read_text(), re.MULTILINE)
    }

    assert copied == made


def test_the_stand_in_for_kafka_has_the_folder_that_the_compose_file_names() -> None:
    assert SERVICES["broker"]["environment"]["KAFKA_LOG_DIRS"] in (HERE / "kafka.Dockerfile").read_text()


def test_the_script_of_the_stand_in_for_kafka_is_bash() -> None:
    subprocess.run(["bash", "-n", HERE / "kafka-run"], check=True)


def test_pip_asks_the_index_of_the_environment() -> None:
    assert pip_settings({}) == "[global]\ncert = /etc/ssl/certs/ca-certificates.crt\n"
    assert pip_settings({"PIP_INDEX_URL": "https://index.test/simple"}).endswith(
        "\nindex-url = https://index.test/simple\n"
    )


def test_podman_keeps_everything_in_the_folder() -> None:
    files = settings(Path("/of/the/rehearsal"))
    containers = tomllib.loads(files["containers.conf"])
    storage = tomllib.loads(files["storage.conf"])["storage"]
    folders = [containers["engine"]["tmp_dir"], containers["network"]["network_config_dir"]]
    folders += [storage["graphroot"], storage["runroot"]]

    assert [folder for folder in folders if not folder.startswith("/of/the/rehearsal/")] == []
    named = variables(Path("/of/the/rehearsal"))
    assert {Path(value).name for value in named.values() if value.startswith("/")} == files.keys()


def test_the_service_waits_for_the_health_of_the_broker() -> None:
    assert {name: healthy_before(service) for name, service in started(ROOT).items()} == {
        "broker": [],
        "service": ["broker"],
        "prometheus": [],
    }


def test_the_published_ports_are_those_that_this_machine_must_have_free() -> None:
    assert published_ports(ROOT) == [9092, 9108, 9090]


def test_grafanas_interval_is_filled_in() -> None:
    expressions = dashboard_expressions(ROOT)

    assert len(expressions) > 10
    assert [expression for expression in expressions if "$" in expression] == []


def test_a_machine_without_podman_gets_one_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    sentence = missing({"PATH": str(tmp_path)})

    assert sentence is not None
    assert sentence.startswith("The rehearsal needs podman, ")
    assert sentence.endswith(f"(Debian: apt install --no-install-recommends {PACKAGES}).")


def test_a_user_other_than_root_gets_one_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)

    with pytest.raises(SetupError, match="needs root"):
        Engine(tmp_path / "engine", ROOT, tmp_path / "podman-compose")
    assert not (tmp_path / "engine").exists()
