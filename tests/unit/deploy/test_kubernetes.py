"""The pods of deploy/kubernetes fit the service, its image, and each other."""

import os
import re
import subprocess
import zipfile
from http import HTTPStatus
from pathlib import Path
from typing import Any

import dockerfile
import pyspark
import pytest
import yaml

from bmq.config import load_config
from bmq.metrics.health import BROKER_LIMIT_SECONDS, Health, answer
from tests.manifests import FOLDER, ROOT, Document, read_document, read_documents

CONFIG = FOLDER / "base" / "bmq.toml"
COMPOSED = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]["service"]
IMAGE = dockerfile.parse_file(str(ROOT / "deploy" / "Dockerfile"))
SPARK_IMAGE = dockerfile.parse_file(str(FOLDER / "spark" / "Dockerfile"))
APPLICATION = read_document("spark-operator/application.yaml")["spec"]

# The pods in which `bmq serve` runs, by the folder of the way.
DRIVERS: dict[str, Document] = {
    "pod": read_document("pod/statefulset.yaml")["spec"]["template"],
    "spark-submit": read_document("spark-submit/statefulset.yaml")["spec"]["template"],
    "spark-operator": APPLICATION["driver"]["template"],
}
EXECUTORS: dict[str, Document] = {
    "spark-submit": read_document("spark-submit/executor.yaml"),
    "spark-operator": APPLICATION["executor"]["template"],
}
PODS = [*DRIVERS.values(), *EXECUTORS.values()]
each_way = pytest.mark.parametrize("way", DRIVERS)
each_cluster = pytest.mark.parametrize("way", EXECUTORS)


def container(pod: Document) -> Document:
    (only,) = pod["spec"]["containers"]
    return dict(only)


def mounts(pod: Document) -> dict[str, str]:
    return {mount["name"]: mount["mountPath"] for mount in container(pod)["volumeMounts"]}


def arguments(way: str) -> list[str]:
    found: list[str] = APPLICATION["arguments"] if way == "spark-operator" else container(DRIVERS[way])["args"]
    return found


# Configuration


@each_way
def test_the_service_accepts_the_file_and_the_variables(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    secrets = {variable["name"]: variable["valueFrom"] for variable in container(DRIVERS[way])["env"]}
    for name, source in secrets.items():
        if "secretKeyRef" in source:
            monkeypatch.setenv(name, f"{source['secretKeyRef']['name']}/{source['secretKeyRef']['key']}")

    config = load_config(CONFIG)

    assert config.kafka.options["sasl.password"] == "bmq-service/password"
    assert (config.metrics.user, config.metrics.password) == ("bmq-metrics/username", "bmq-metrics/password")


@each_way
def test_the_files_that_the_configuration_names_are_mounted(way: str) -> None:
    config = load_config(CONFIG)
    places = mounts(DRIVERS[way])

    assert arguments(way)[-2:] == ["--config", f"{places['config']}/{CONFIG.name}"]
    assert config.kafka.options["ssl.ca.location"] == f"{places['kafka-ca']}/ca.crt"
    assert config.job.checkpoint.startswith(f"{places['state' if way == 'pod' else 'checkpoint']}/")


def test_no_file_contains_a_password() -> None:
    assert [place for place, document in read_documents() if document.get("kind") == "Secret"] == []
    assert "password" not in {name for name in re.findall(r"^\"?([\w.]+)\"? =", CONFIG.read_text(), re.MULTILINE)}


# Probes and ports


@each_way
def test_the_service_answers_the_paths_of_the_probes(way: str) -> None:
    now = 0.0
    health = Health(600, clock=lambda: now)
    ready, live, start = (container(DRIVERS[way])[f"{kind}Probe"] for kind in ("readiness", "liveness", "startup"))

    def answers(probe: Any) -> bool:
        assert probe["httpGet"]["port"] == "metrics"
        return answer(health, probe["httpGet"]["path"])[0] == HTTPStatus.OK

    assert (answers(start), answers(live), answers(ready)) == (True, True, False)
    health.begun()
    health.running()
    assert (answers(start), answers(live), answers(ready)) == (True, True, True)
    # A restart would not bring the broker back.
    health.broker(answers=False)
    now = BROKER_LIMIT_SECONDS + 1
    assert (answers(live), answers(ready)) == (True, False)


@each_way
def test_the_port_is_the_one_of_the_configuration(way: str) -> None:
    config = load_config(CONFIG)
    (port,) = container(DRIVERS[way])["ports"]

    assert port == {"name": "metrics", "containerPort": config.metrics.port}
    assert config.metrics.host == "0.0.0.0"  # noqa: S104 - a pod has its own address


def test_the_service_of_kubernetes_has_the_name_and_the_port_of_the_pods() -> None:
    service = read_document("base/service.yaml")
    (port,) = service["spec"]["ports"]

    assert (port["port"], port["targetPort"]) == (load_config(CONFIG).metrics.port, "metrics")
    for way in ("pod", "spark-submit"):
        stateful_set = read_document(f"{way}/statefulset.yaml")["spec"]
        assert stateful_set["serviceName"] == service["metadata"]["name"]
        assert stateful_set["selector"]["matchLabels"] == service["spec"]["selector"]


def test_prometheus_finds_the_drivers_and_no_executors() -> None:
    monitor = read_document("podmonitor/podmonitor.yaml")["spec"]
    (endpoint,) = monitor["podMetricsEndpoints"]
    wanted = monitor["selector"]["matchLabels"].items()
    variables = {variable["name"]: variable["valueFrom"] for variable in container(DRIVERS["pod"])["env"]}

    assert [wanted <= pod["metadata"]["labels"].items() for pod in DRIVERS.values()] == [True] * 3
    assert [wanted <= pod["metadata"]["labels"].items() for pod in EXECUTORS.values()] == [False] * 2
    assert (endpoint["port"], endpoint["path"]) == ("metrics", "/metrics")
    assert endpoint["basicAuth"]["username"] == variables["BMQ_METRICS__USER"]["secretKeyRef"]
    assert endpoint["basicAuth"]["password"] == variables["BMQ_METRICS__PASSWORD"]["secretKeyRef"]


# Images


def test_the_images_are_those_of_the_compose_file_and_of_the_dockerfiles() -> None:
    (built_from,) = [command.value[0] for command in SPARK_IMAGE if command.cmd == "FROM"]
    (python,) = [command.value[0] for command in IMAGE if command.cmd == "FROM"]
    (home,) = [dict([command.value])["SPARK_HOME"] for command in SPARK_IMAGE if command.cmd == "ENV"]
    spark_image = APPLICATION["image"]

    assert container(DRIVERS["pod"])["image"] == built_from == COMPOSED["image"]
    assert spark_image == built_from.replace("bmq:", "bmq-spark:")
    assert container(DRIVERS["spark-submit"])["image"] == spark_image
    assert f"spark.kubernetes.container.image={spark_image}" in arguments("spark-submit")
    assert f"--tag {spark_image} " in (FOLDER / "spark" / "Dockerfile").read_text()
    assert home == f"/usr/local/lib/python{re.findall(r':([0-9.]+)-', python)[0]}/site-packages/pyspark"
    assert APPLICATION["sparkVersion"] == pyspark.__version__


def test_every_pod_runs_as_the_user_of_the_image() -> None:
    (uid,) = re.findall(r"--uid (\d+)", " ".join(command.original for command in IMAGE))

    for pod in PODS:
        security = pod["spec"]["securityContext"]
        assert security["runAsNonRoot"]
        assert {security["runAsUser"], security["fsGroup"]} == {int(uid)}
        assert not container(pod)["securityContext"]["allowPrivilegeEscalation"]


@each_way
def test_a_pod_has_as_long_to_stop_as_a_container_of_compose(way: str) -> None:
    assert f"{DRIVERS[way]['spec']['terminationGracePeriodSeconds']}s" == COMPOSED["stop_grace_period"]


def test_every_pod_collects_orphans_and_has_no_variables_of_services() -> None:
    assert COMPOSED["init"]
    assert [pod["spec"]["shareProcessNamespace"] for pod in PODS] == [True] * 5
    assert [pod["spec"]["enableServiceLinks"] for pod in PODS] == [False] * 5


# Volumes


def test_every_mount_has_a_volume_and_every_volume_a_mount() -> None:
    claimed = {
        claim["metadata"]["name"] for claim in read_document("pod/statefulset.yaml")["spec"]["volumeClaimTemplates"]
    }

    for pod in PODS:
        volumes = {volume["name"] for volume in pod["spec"]["volumes"]}
        assert mounts(pod).keys() - claimed == volumes


def test_every_config_map_and_every_claim_that_a_pod_names_is_made() -> None:
    made = {
        entry["name"]
        for place, document in read_documents()
        if place.endswith("kustomization.yaml[0]")
        for entry in document.get("configMapGenerator", [])
    }
    claim = read_document("spark/checkpoint.yaml")["metadata"]["name"]

    for pod in PODS:
        for volume in pod["spec"]["volumes"]:
            assert volume.get("configMap", {"name": "bmq-config"})["name"] in made
            assert volume.get("persistentVolumeClaim", {"claimName": claim})["claimName"] == claim


@each_cluster
def test_an_executor_sees_the_files_of_the_driver_at_the_same_places(way: str) -> None:
    driver, executor = mounts(DRIVERS[way]), mounts(EXECUTORS[way])

    assert {"kafka-ca", "checkpoint", "tmp"} == executor.keys()
    assert executor.items() <= driver.items()


def test_both_ways_have_the_same_executors() -> None:
    submitted = EXECUTORS["spark-submit"]

    assert EXECUTORS["spark-operator"] == {name: submitted[name] for name in ("metadata", "spec")}


# Spark


@each_cluster
def test_the_driver_may_make_executors(way: str) -> None:
    account, role, binding = (document for place, document in read_documents() if place.startswith("spark/rbac.yaml"))
    used = APPLICATION["driver"]["serviceAccount"]
    if way == "spark-submit":
        used = DRIVERS[way]["spec"]["serviceAccountName"]

    assert used == account["metadata"]["name"]
    assert [subject["name"] for subject in binding["subjects"]] == [used]
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    assert "pods" in role["rules"][0]["resources"]


def test_both_ways_start_what_the_image_has() -> None:
    copied = {command.value[-1]: command.value[0] for command in SPARK_IMAGE if command.cmd == "COPY"}
    (entry,) = [command.value for command in SPARK_IMAGE if command.cmd == "ENTRYPOINT"]
    (main,) = [argument for argument in arguments("spark-submit") if argument.endswith(".py")]

    assert f"local://{main}" == APPLICATION["mainApplicationFile"]
    assert [path for path in copied.values() if not (ROOT / "deploy" / path).is_file()] == []
    assert {main, *entry} == copied.keys()


def test_the_entrypoint_starts_the_executor_that_spark_ships() -> None:
    script = FOLDER / "spark" / "entrypoint.sh"
    (name,) = re.findall(r"org\.apache\.spark\.\S+", script.read_text())
    (jar,) = Path(pyspark.__file__).parent.glob("jars/spark-kubernetes_*.jar")

    assert os.access(script, os.X_OK)
    assert f"{name.replace('.', '/')}.class" in zipfile.ZipFile(jar).namelist()


def test_the_entrypoint_refuses_an_unknown_role() -> None:
    ran = subprocess.run([FOLDER / "spark" / "entrypoint.sh", "serve"], capture_output=True, text=True, timeout=30)

    assert (ran.returncode, ran.stderr) == (2, "The first argument is serve, but it must be driver or executor.\n")
