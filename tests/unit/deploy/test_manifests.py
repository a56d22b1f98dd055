"""Every file of deploy/kubernetes keeps the schema of its resource, and every kustomization is complete."""

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.manifests import FOLDER, Document, find_faults, read_document, read_documents

# Settings of kustomize itself have no kind.
RESOURCES = {place: document for place, document in read_documents() if "kind" in document}
# Maps whose names are free: labels, a topic's settings, kinds of resources of a machine.
FREE = {"labels", "matchLabels", "config", "requests", "limits"}
KUSTOMIZATIONS = sorted(path.parent.name for path in FOLDER.glob("*/kustomization.yaml"))


@pytest.mark.parametrize("place", RESOURCES)
def test_every_resource_keeps_its_schema(place: str) -> None:
    assert find_faults(RESOURCES[place]) == []


@pytest.mark.parametrize("place", RESOURCES)
def test_an_unknown_field_is_a_fault_at_every_depth(place: str) -> None:
    missed = [path for path, unknown in with_an_unknown_field(RESOURCES[place]) if not find_faults(unknown)]

    assert missed == []


def with_an_unknown_field(document: Document) -> Iterator[tuple[tuple[Any, ...], Document]]:
    """Yield copies of a document, each with one unknown field in another map, and the path to the map."""
    # A Service selects by labels themselves.
    labels = ("spec", "selector") if document["kind"] == "Service" else None
    for path in maps_in(document):
        if path == labels or FREE & set(path):
            continue
        changed = copy.deepcopy(document)
        place: Any = changed
        for step in path:
            place = place[step]
        place["unheardOf"] = "x"
        yield path, changed


def maps_in(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(value, dict):
        yield path
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, part in parts:
        yield from maps_in(part, (*path, step))


@pytest.mark.parametrize(
    ("place", "path", "value"),
    [
        ("pod/statefulset.yaml[0]", ("spec", "replicas"), "one"),
        ("pod/statefulset.yaml[0]", ("spec", "serviceName"), 7),
        ("podmonitor/podmonitor.yaml[0]", ("spec", "podMetricsEndpoints"), "metrics"),
        ("spark-operator/application.yaml[0]", ("spec", "type"), "Ruby"),
        ("spark-operator/application.yaml[0]", ("spec", "executor", "instances"), 0),
        ("strimzi/topics.yaml[0]", ("spec", "partitions"), "four"),
        ("strimzi/users.yaml[0]", ("spec", "authorization", "type"), "complicated"),
    ],
)
def test_a_value_of_another_type_is_a_fault(place: str, path: tuple[str, ...], value: object) -> None:
    changed: Any = copy.deepcopy(RESOURCES[place])
    part = changed
    for step in path[:-1]:
        part = part[step]
    part[path[-1]] = value

    assert find_faults(changed) != []


@pytest.mark.parametrize("name", KUSTOMIZATIONS)
def test_a_kustomization_names_files_that_exist(name: str) -> None:
    folder = FOLDER / name

    assert [str(path) for path in named_files(folder) if not path.exists()] == []


def test_every_file_belongs_to_a_kustomization() -> None:
    named = {path.resolve() for name in KUSTOMIZATIONS for path in named_files(FOLDER / name)}
    others = [path for path in FOLDER.rglob("*.*") if path.suffix in {".yaml", ".toml"} and path.resolve() not in named]

    assert {path.name for path in others} == {"kustomization.yaml"}


def named_files(folder: Path) -> list[Path]:
    document = yaml.safe_load((folder / "kustomization.yaml").read_text())
    generated = [file for one in document.get("configMapGenerator", []) for file in one["files"]]
    return [folder / file for file in [*document["resources"], *document.get("configurations", []), *generated]]


def test_kustomize_finds_the_config_map_and_the_image_of_a_spark_application() -> None:
    application = read_document("spark-operator/application.yaml")
    fields = read_document("spark-operator/fields.yaml")
    ((config_maps,), (image,)) = fields["nameReference"], fields["images"]
    (path,) = config_maps["fieldSpecs"]

    assert config_maps["kind"] == "ConfigMap"
    assert {path["kind"], image["kind"]} == {application["kind"]}
    assert at(application, path["path"]) == ["bmq-config"]
    assert at(application, image["path"]) == ["bmq-spark:0.1.0"]


def at(document: Any, path: str) -> list[Any]:
    """Return the values at a path of kustomize, which also goes through lists."""
    found = [document]
    for step in path.split("/"):
        parts = [part for one in found for part in (one if isinstance(one, list) else [one])]
        found = [part[step] for part in parts if step in part]
    return found
