"""Messages of the AsyncAPI document that have no model: readings, deletes, dead letters, members and marks.

Their fields are those of docs/wire-format.md; a test compares them with what the renderers of `wire` write.
"""

from typing import Any

from bmq.wire.outgoing import CROSSING_HEADERS, DEAD_LETTER_HEADERS, DIVERTED_HEADERS, READING_HEADERS

Message = dict[str, Any]

BINDING_VERSION = "0.5.0"  # of AsyncAPI's binding for Kafka
_TEXT = {"type": "string"}
_TIME = {"type": "integer", "description": "Epoch milliseconds."}
_VALUE = {"type": "object", "additionalProperties": {"type": "number"}, "description": "The dimensions of the feed."}


def message(
    title: str, key: str | None, *, payload: Any, headers: Message | None = None, description: str | None = None
) -> Message:
    """Return an AsyncAPI message; ``key`` describes the record key, and None means that the record has no key."""
    binding: Message = {"bindingVersion": BINDING_VERSION}
    if key is not None:
        binding["key"] = {"type": "string", "description": key}
    optional = {"description": description, "headers": headers}
    return {
        "title": title,
        **{name: value for name, value in optional.items() if value is not None},
        "payload": payload,
        "bindings": {"kafka": binding},
    }


def _headers(needed: tuple[str, ...], others: tuple[str, ...] = ()) -> Message:
    properties = {name: _TEXT for name in (*needed, *others)}
    return {"type": "object", "properties": properties, "required": list(needed)}


# `query_id` is not in `READING_HEADERS`, and with the layout `reading` not in other events of one feed.
EVENT_HEADERS = _headers(
    READING_HEADERS, tuple(n for n in CROSSING_HEADERS if n not in READING_HEADERS) + DIVERTED_HEADERS
)
READING_EVENT_HEADERS = _headers(READING_HEADERS, DIVERTED_HEADERS)

DELETE = message("Delete a query", "The query id.", payload={"type": "null"})

READING = message(
    "A reading",
    'Any; the stream id with `stream_id = "@key"`.',
    payload={"type": "object"},
    description="A JSON object with the fields that `[feeds.NAME]` names: the stream id, the event time, each "
    'dimension and the attributes. The service ignores other fields. With `format = "csv"` a reading is a line of '
    "these values, without names.",
)

DEAD_LETTER = message(
    "A record that is not a reading",
    "The key of the record, unchanged; null if the record has no key, or if the key is too long.",
    payload={},
    headers=_headers(DEAD_LETTER_HEADERS),
    description="The value of the record, unchanged; null if it is too long.",
) | {"contentType": "application/octet-stream"}

MEMBER = message(
    "A stream that is inside",
    "A JSON list of query id, feed and stream id.",
    payload={
        "type": ["object", "null"],
        "properties": {
            "query_id": _TEXT,
            "query_version": {"type": "integer"},
            "feed": _TEXT,
            "stream_id": _TEXT,
            "since": _TIME,
            "value": _VALUE,
        },
        "required": ["query_id", "query_version", "feed", "stream_id", "since", "value"],
    },
    description="Null after the stream has left.",
)

MARK = message(
    "A mark that moves the clock of a silent feed",
    None,
    payload={"type": "object", "properties": {"feed": _TEXT, "event_time": _TIME}, "required": ["feed"]},
    description="Written and read by the service alone.",
)
