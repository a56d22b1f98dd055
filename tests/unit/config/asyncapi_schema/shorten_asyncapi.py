"""Writes the JSON Schema of AsyncAPI documents beside this file: `python -m …shorten_asyncapi PUBLISHED_FILE`.

README.md says where the published file comes from. Everything here makes the schema shorter or stricter, never laxer.
"""

import json
import sys
from pathlib import Path
from typing import Any

TARGET = Path(__file__).with_name("asyncapi-3.0.0.json")
# Definitions that our document does not need; what names them is forbidden instead.
DROPPED = ("multiFormatSchema", "SecurityScheme", "ReferenceToSecurityScheme")
DRAFT_7 = "json-schema-draft-07-schema"


def shortened(published: dict[str, Any]) -> dict[str, Any]:
    """Return the schema with the definitions that it still needs."""
    definitions = {name: _short(part) for name, part in published["definitions"].items() if name not in DROPPED}
    # Of draft 07 itself everything stays: its examples and descriptions are names of properties.
    definitions[DRAFT_7] = published["definitions"][DRAFT_7]
    definitions |= dict.fromkeys(DROPPED, False)
    root = _short({name: part for name, part in published.items() if name != "definitions"})
    needed: dict[str, Any] = {}
    missing = _named(root)
    while missing:
        needed |= {name: definitions[name] for name in missing}
        missing = _named(list(needed.values())) - needed.keys()
    return {**root, "definitions": needed}


def _short(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_short(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        name: _fields(part) if name == "properties" else _short(part)
        for name, part in schema.items()
        if name not in ("description", "examples", "example", "externalDocs")
    }


def _fields(properties: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of an object; of the bindings of many protocols only those of Kafka."""
    kept = ["kafka"] if "kafka" in properties else list(properties)
    return {name: _short(properties[name]) for name in kept}


def _named(schema: Any) -> set[str]:
    if isinstance(schema, list):
        return {name for part in schema for name in _named(part)}
    if not isinstance(schema, dict):
        return set()
    reference: Any = schema.get("$ref")
    # "#/definitions/operation/properties/tags" names a part of a definition, and "#" the whole schema.
    path = reference.split("/") if isinstance(reference, str) else []
    own = {path[2]} if path[1:2] == ["definitions"] else set()
    return own | {name for part in schema.values() for name in _named(part)}


if __name__ == "__main__":
    schema = shortened(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
    TARGET.write_text(json.dumps(schema, indent=1, sort_keys=True) + "\n", encoding="utf-8")
