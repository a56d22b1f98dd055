"""The JSON Schemas of the messages in draft 07, as AsyncAPI embeds schemas: one table, in which they name each other.

The files in docs/schemas are of draft 2020-12, which AsyncAPI's tools do not read without a plugin. Two things differ:
the list of a tuple's items, and the place of definitions that several schemas share.
"""

from collections.abc import Mapping
from typing import Any

Schema = dict[str, Any]

_DEFINITIONS = "#/$defs/"
_DROPPED = ("$schema", "$defs")


def in_draft_7(schemas: Mapping[str, Schema], place: str) -> dict[str, Schema]:
    """Return the schemas and their definitions as one table, in draft 07.

    Parameters
    ----------
    schemas : name -> schema in draft 2020-12, as `wire.schemas` makes them.
    place : the JSON pointer of the table in the document, such as "#/components/schemas/".

    Raises
    ------
    ValueError
        Two schemas have different definitions of one name, or a definition has the name of a schema. Rename a model.
    """
    table = {name: _converted(schema, place) for name, schema in schemas.items()}
    for name, schema in schemas.items():
        for defined, definition in schema.get("$defs", {}).items():
            converted = _converted(definition, place)
            if table.setdefault(defined, converted) != converted:
                raise ValueError(
                    f"the definition {defined!r} of schema {name!r} differs from another schema of that name, but one "
                    "document has one schema of a name; rename one of the two models"
                )
    return table


def _converted(node: Any, place: str) -> Any:
    if isinstance(node, list):
        return [_converted(part, place) for part in node]
    if not isinstance(node, dict):
        return node
    converted = {
        name: {field: _converted(part, place) for field, part in value.items()}
        if name == "properties"
        else _converted(value, place)
        for name, value in node.items()
        if name not in _DROPPED
    }
    if "prefixItems" in converted:
        rest = converted.pop("items", None)
        converted["items"] = converted.pop("prefixItems")
        if rest is not None:
            converted["additionalItems"] = rest
    reference = converted.get("$ref")
    if isinstance(reference, str):
        converted["$ref"] = place + reference.removeprefix(_DEFINITIONS)
    return converted
