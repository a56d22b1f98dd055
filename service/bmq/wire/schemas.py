"""JSON Schemas of the messages, generated from the models: `python -m bmq.wire.schemas [FOLDER]`.

The table of kinds has the models of definitions and of events. The schemas of output allow further fields: later
versions may add fields, and a client must not fail on one.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

from pydantic import BaseModel, TypeAdapter

from bmq.wire.event_models import ReadingEvent
from bmq.wire.kinds import KINDS
from bmq.wire.replies import DegradedReply, EffectiveReply, RejectedReply

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schemas() -> dict[str, dict[str, Any]]:
    """Return the JSON Schema of each message, by file name."""
    reply: TypeAdapter[EffectiveReply | DegradedReply | RejectedReply] = TypeAdapter(
        EffectiveReply | DegradedReply | RejectedReply
    )
    # Several kinds may share a model of events. Layout `reading` has its own model for crossings.
    of_events: list[type[BaseModel]] = [ReadingEvent, *(known.event for known in KINDS.values())]
    return {
        **{
            f"{name.replace('_', '-')}-definition.json": _schema(
                f"A query of kind {name}", TypeAdapter(kind.definition)
            )
            for name, kind in KINDS.items()
        },
        **{_file_name(model): _schema(str(model.model_config["title"]), TypeAdapter(model)) for model in of_events},
        "reply.json": _schema("A reply to a control command", reply),
    }


def write_schemas(folder: Path) -> None:
    """Write every schema into ``folder``; create the folder if it does not exist."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, schema in schemas().items():
        (folder / name).write_text(file_text(schema), encoding="utf-8")


def file_text(schema: dict[str, Any]) -> str:
    """Return the text of the file of a schema."""
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def _file_name(model: type[BaseModel]) -> str:
    """Return "crossing-event.json" for `CrossingEvent`."""
    return re.sub("(?<!^)(?=[A-Z])", "-", model.__name__).lower() + ".json"


def _schema(title: str, adapter: TypeAdapter[Any]) -> dict[str, Any]:
    # Removed, because "default": null is a value that the field itself does not allow.
    schema = _without_null_defaults(adapter.json_schema(mode="validation"))
    return {"$schema": DIALECT, **schema, "title": title}


def _without_null_defaults(node: Any) -> Any:
    if isinstance(node, list):
        return [_without_null_defaults(item) for item in node]
    if not isinstance(node, dict):
        return node
    return {
        name: _without_null_defaults(value) for name, value in node.items() if not (name == "default" and value is None)
    }


if __name__ == "__main__":
    write_schemas(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/schemas"))
