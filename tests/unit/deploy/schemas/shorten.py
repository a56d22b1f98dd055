"""Writes the JSON Schemas beside this file from published ones: `python -m tests.unit.deploy.schemas.shorten FOLDER`.

README.md says where the files of FOLDER come from. Everything here makes a schema shorter or stricter, never laxer: it
drops descriptions and fields that no file of deploy/kubernetes uses, and forbids fields that a schema does not name.
"""

import json
import sys
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).parent
Schema = dict[str, Any]

DIALECT = "https://json-schema.org/draft/2020-12/schema"
KUBERNETES = "v1.33.0-local-strict"
KINDS = {
    "apps/v1": ["StatefulSet"],
    "rbac.authorization.k8s.io/v1": ["Role", "RoleBinding"],
    "v1": ["PersistentVolumeClaim", "Pod", "Service", "ServiceAccount"],
}
# Large, and not used here: a file that uses one of them fails until this list lacks it. `operation` is not in
# Strimzi's v1.
UNUSED = frozenset(
    {
        "affinity",
        "batchSchedulerOptions",
        "dnsConfig",
        "driverIngressOptions",
        "dynamicAllocation",
        "ephemeral",
        "ephemeralContainers",
        "initContainers",
        "lifecycle",
        "managedFields",
        "monitoring",
        "operation",
        "ownerReferences",
        "projected",
        "resourceClaims",
        "sidecars",
        "sparkUIOptions",
        "status",
        "tolerations",
        "topologySpreadConstraints",
    }
)
# Volumes of one provider or protocol each.
VOLUMES = frozenset(
    {
        "awsElasticBlockStore",
        "azureDisk",
        "azureFile",
        "cephfs",
        "cinder",
        "csi",
        "downwardAPI",
        "fc",
        "flexVolume",
        "flocker",
        "gcePersistentDisk",
        "gitRepo",
        "glusterfs",
        "iscsi",
        "photonPersistentDisk",
        "portworxVolume",
        "quobyte",
        "rbd",
        "scaleIO",
        "storageos",
        "vsphereVolume",
    }
)


def main(folder: Path) -> None:
    """Write every schema from the files of ``folder``."""
    kubernetes = _kubernetes(folder / "kubernetes-json-schema" / KUBERNETES)
    _write("kubernetes", kubernetes)
    _write("sparkapplication", _custom(_of_crd(folder / "sparkoperator.k8s.io_sparkapplications.yaml"), "driver"))
    _write("podmonitor", _custom(_of_crd(folder / "monitoring.coreos.com_podmonitors.yaml"), "podMetricsEndpoints"))
    _write("kafkatopic", _custom(_spec(folder / "KafkaTopicSpec.json"), "partitions"))
    _write("kafkauser", _custom(_spec(folder / "KafkaUserSpec.json"), "authorization"))


def _kubernetes(folder: Path) -> Schema:
    """Return one schema with a definition for each kind, `apps/v1 StatefulSet`, and for all that these refer to."""
    published = json.loads((folder / "_definitions.json").read_text())["$defs"]
    definitions: Schema = {}
    for api, kinds in KINDS.items():
        prefix = api.split("/")[0].split(".")[0] + "-" if "/" in api else ""
        for kind in kinds:
            # "apps-v1" and "v1": as the files are named.
            name = f"{kind}-{prefix}v1.json".lower()
            definitions[f"{api} {kind}"] = _shortened(json.loads((folder / name).read_text()))
    missing = _named(definitions)
    while missing:
        definitions |= {name: _shortened(published[name]) for name in missing}
        missing = _named(definitions) - definitions.keys()
    return {"$schema": DIALECT, "$defs": definitions}


def _named(schema: Any) -> set[str]:
    if isinstance(schema, list):
        return {name for part in schema for name in _named(part)}
    if not isinstance(schema, dict):
        return set()
    reference = schema.get("$ref")
    own = {reference.rpartition("/")[2]} if isinstance(reference, str) else set()
    return own | {name for part in schema.values() for name in _named(part)}


def _of_crd(path: Path) -> Schema:
    (version,) = yaml.safe_load(path.read_text())["spec"]["versions"]
    schema: Schema = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    return schema


def _spec(path: Path) -> Schema:
    schema: Schema = json.loads(path.read_text())
    del schema["$schema"]
    return schema


def _custom(spec: Schema, known: str) -> Schema:
    """Return the schema of a custom resource whose `spec` has the field ``known``, among others."""
    assert known in spec["properties"], f"no field {known!r}: another schema than the expected one"
    text = {"type": "string"}
    texts = {"type": "object", "additionalProperties": text}
    metadata = {
        "type": "object",
        "properties": {"name": text, "labels": texts, "annotations": texts},
        "required": ["name"],
        "additionalProperties": False,
    }
    return {
        "$schema": DIALECT,
        "type": "object",
        "properties": {"apiVersion": text, "kind": text, "metadata": metadata, "spec": _shortened(spec)},
        "required": ["apiVersion", "kind", "metadata", "spec"],
        "additionalProperties": False,
    }


def _shortened(schema: Any) -> Any:
    """Return the schema without descriptions and unused fields; unknown fields are forbidden."""
    if isinstance(schema, list):
        return [_shortened(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    short = {
        name: {field: _shortened(part) for field, part in value.items() if field not in UNUSED | VOLUMES}
        if name == "properties"
        else _shortened(value)
        for name, value in schema.items()
        if name not in ("description", "format", "$id", "$schema")
    }
    reference: Any = short.get("$ref")
    if isinstance(reference, str):
        short["$ref"] = "#/$defs/" + reference.rpartition("/")[2]
    if "properties" in short:
        short.setdefault("additionalProperties", False)
    return short


def _write(name: str, schema: Schema) -> None:
    (HERE / f"{name}.json").write_text(json.dumps(schema, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
