"""The files of deploy/kubernetes, and what their schemas say of them. Needs no cluster, no kustomize and no network."""

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "deploy" / "kubernetes"
SCHEMAS = ROOT / "tests" / "unit" / "deploy" / "schemas"

Document = dict[str, Any]

_CUSTOM = {
    ("kafka.strimzi.io/v1", "KafkaTopic"): "kafkatopic",
    ("kafka.strimzi.io/v1", "KafkaUser"): "kafkauser",
    ("kustomize.config.k8s.io/v1beta1", "Kustomization"): "kustomization",
    ("monitoring.coreos.com/v1", "PodMonitor"): "podmonitor",
    ("sparkoperator.k8s.io/v1beta2", "SparkApplication"): "sparkapplication",
}


def read_documents() -> Iterator[tuple[str, Document]]:
    """Yield the place and the content of every document below deploy/kubernetes."""
    for path in sorted(FOLDER.rglob("*.yaml")):
        for number, document in enumerate(yaml.safe_load_all(path.read_text(encoding="utf-8"))):
            yield f"{path.relative_to(FOLDER)}[{number}]", document


def read_document(name: str) -> Document:
    """Return the only document of a file below deploy/kubernetes."""
    document: Document = yaml.safe_load((FOLDER / name).read_text(encoding="utf-8"))
    return document


def find_faults(document: Document) -> list[str]:
    """Return what the schema of a document refuses, one line each.

    The schema of a SparkApplication accepts any template of a pod, as the operator does, so the templates are checked
    as pods.
    """
    found = [
        f"{'.'.join(map(str, error.absolute_path))}: {error.message}"
        for error in _validator(document["apiVersion"], document["kind"]).iter_errors(document)
    ]
    if document["kind"] == "SparkApplication":
        for role in ("driver", "executor"):
            pod = {"apiVersion": "v1", "kind": "Pod", **document["spec"][role]["template"]}
            found += [f"spec.{role}.template: {fault}" for fault in find_faults(pod)]
    return found


@cache
def _validator(api: str, kind: str) -> Draft202012Validator:
    if (api, kind) in _CUSTOM:
        return Draft202012Validator(_schema(_CUSTOM[api, kind]))
    definitions = _schema("kubernetes")["$defs"]
    assert f"{api} {kind}" in definitions, f"no schema for {api} {kind}: add it in shorten.py"
    return Draft202012Validator({"$defs": definitions, **definitions[f"{api} {kind}"]})


def _schema(name: str) -> Document:
    schema: Document = json.loads((SCHEMAS / f"{name}.json").read_text(encoding="utf-8"))
    return schema
