"""The AsyncAPI document of all topics, from the models: `python -m bmq.config.asyncapi > docs/asyncapi.json`.

The document describes the service as the application: it receives commands and readings, and sends the rest. The
payloads are the JSON Schemas of `wire.schemas`. The names of the topics are the defaults of `[topics]`.
`config.asyncapi_messages` describes the messages that have no model.
"""

from typing import Any

from bmq.config.asyncapi_messages import (
    BINDING_VERSION,
    DEAD_LETTER,
    DELETE,
    EVENT_HEADERS,
    MARK,
    MEMBER,
    READING,
    READING_EVENT_HEADERS,
    Message,
    message,
)
from bmq.config.sections import TopicsSection
from bmq.wire.draft7 import in_draft_7
from bmq.wire.kinds import KINDS
from bmq.wire.schemas import file_text, schemas

ASYNCAPI = "3.0.0"
_VERSION = "1"  # of the messages: their names and codes do not change, and fields are only added
_SCHEMAS = "#/components/schemas/"
_CONTENT_TYPE = "application/json"
_STREAM_OR_QUERY = 'The stream id, for a join the left one; the query id with `topics.key = "query_id"`.'

# channel -> the option of [topics] that names its topic
_TOPICS = {
    "commands": "control",
    "replies": "replies",
    "events": "events",
    "deadLetters": "dead_letter",
    "members": "membership",
    "marks": "clock",
    "markers": "markers",
}
_ONE_COMPACTED = {"partitions": 1, "topicConfiguration": {"cleanup.policy": ["compact"]}}
_BINDINGS: dict[str, dict[str, Any]] = {
    "commands": _ONE_COMPACTED,
    "members": {"topicConfiguration": {"cleanup.policy": ["compact"]}},
}


def document() -> dict[str, Any]:
    """Return the whole document, as JSON types."""
    messages = _messages()
    channels = _channels(messages)
    return {
        "asyncapi": ASYNCAPI,
        "info": {
            "title": "BMQ",
            "version": _VERSION,
            "description": "Standing queries over Kafka streams. docs/wire-format.md explains the messages, and "
            "docs/semantics.md says when the service writes them. A topic without a parameter has its default name, "
            "and events have the default format.",
            "license": {"name": "Apache-2.0", "url": "https://www.apache.org/licenses/LICENSE-2.0"},
        },
        "defaultContentType": _CONTENT_TYPE,
        "channels": channels,
        "operations": _operations(),
        "components": {
            "messages": {name: one for group in messages.values() for name, one in group.items()},
            "schemas": in_draft_7({_stem(name): schema for name, schema in schemas().items()}, _SCHEMAS),
        },
    }


def _messages() -> dict[str, dict[str, Message]]:
    """Return the messages of each channel, by name."""
    query_id = "The query id."
    commands = {
        f"{_camel(kind)}Definition": message(
            f"Put a {kind} query", query_id, payload=_payload(f"{kind.replace('_', '-')}-definition")
        )
        for kind in KINDS
    }
    events = {
        _camel(stem.replace("-", "_")): message(
            str(schema["title"]),
            "The stream id." if stem == "reading-event" else _STREAM_OR_QUERY,
            payload=_payload(stem),
            headers=READING_EVENT_HEADERS if stem == "reading-event" else EVENT_HEADERS,
        )
        for stem, schema in ((_stem(name), schema) for name, schema in schemas().items())
        if stem.endswith("-event")
    }
    return {
        "commands": {**commands, "delete": DELETE},
        "replies": {"reply": message("A reply to a command", query_id, payload=_payload("reply"))},
        "events": events,
        "deadLetters": {"deadLetter": DEAD_LETTER},
        "members": {"member": MEMBER},
        "marks": {"mark": MARK},
        "markers": {},
        "readings": {"reading": READING},
    }


def _channels(messages: dict[str, dict[str, Message]]) -> dict[str, Any]:
    options = TopicsSection.model_fields
    channels = {
        channel: {
            "address": options[option].default or f"bmq.{option}",
            "description": f"{_text(options[option].description)} The option `topics.{option}` names the topic.",
            "messages": _references(messages[channel]),
            "bindings": {"kafka": {**_BINDINGS.get(channel, {}), "bindingVersion": BINDING_VERSION}},
        }
        for channel, option in _TOPICS.items()
    }
    channels["queryEvents"] = {
        "address": "{output_topic}",
        "description": "Events of the queries that name a topic of their own.",
        "messages": _references(messages["events"]),
        "parameters": {"output_topic": {"description": "The `output_topic` of a query."}},
    }
    channels["readings"] = {
        "address": "{topic}",
        "description": "The readings of one feed.",
        "messages": _references(messages["readings"]),
        "parameters": {"topic": {"description": "The option `feeds.NAME.topic`, or one of `feeds.NAME.topics`."}},
    }
    return channels


def _operations() -> dict[str, Any]:
    return {
        "receiveCommand": _operation("receive", "commands", "Put or delete a query.")
        | {"reply": {"channel": {"$ref": "#/channels/replies"}}},
        "receiveReading": _operation("receive", "readings", "Read one reading of a stream."),
        "receiveMark": _operation("receive", "marks", "Read the service's own mark."),
        "sendReply": _operation("send", "replies", "Answer a command, or report that a query ended."),
        "sendEvent": _operation("send", "events", "Report an event of a query."),
        "sendQueryEvent": _operation("send", "queryEvents", "Report an event of a query with a topic of its own."),
        "sendDeadLetter": _operation("send", "deadLetters", "Keep a record that is not a reading."),
        "sendMember": _operation("send", "members", "Report that a stream is inside, or no longer."),
        "sendMark": _operation("send", "marks", "Move the clock of a silent feed."),
    }


def _operation(action: str, channel: str, summary: str) -> dict[str, Any]:
    return {"action": action, "channel": {"$ref": f"#/channels/{channel}"}, "summary": summary}


def _references(messages: dict[str, Message]) -> dict[str, Any]:
    return {name: {"$ref": f"#/components/messages/{name}"} for name in messages}


def _payload(stem: str) -> dict[str, str]:
    return {"$ref": _SCHEMAS + stem}


def _stem(file_name: str) -> str:
    return file_name.removesuffix(".json")


def _camel(name: str) -> str:
    """Return "bandJoin" for "band_join"."""
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))


def _text(description: str | None) -> str:
    return " ".join((description or "").split())


if __name__ == "__main__":
    print(file_text(document()), end="")
