"""Messages that are larger than their topic accepts (its `max.message.bytes`).

Knows messages and limits of topics. How a limit becomes known is in `kafka_io.output_topics`.
"""

import json
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bmq.records import Bools, Int64s
from bmq.wire.dead_letters import LONGEST_BYTES
from bmq.wire.event_messages import LONGEST_LIST_BYTES

EVENT_TOO_LARGE = "event_too_large"  # the code of a dead letter that is an event; no record has this fault

_BATCH_BYTES = 61  # the head of a batch of records, version 2
_RECORD_BYTES = 41  # at most: length, attributes, timestamp, offset, lengths of key and value, number of headers
_HEADER_BYTES = 10  # at most: lengths of name and value
_EVENT_BYTES = 10_000  # of an event of layout `reading` besides the query ids; usually some 500
_DEAD_LETTER_BYTES = 4_096  # of a dead letter besides key and value


def longest_list(limit: int | None) -> int:
    """Return how many bytes of query ids one event of layout `reading` may have; ``limit`` is that of the topic.

    All that the limit leaves room for: an event that the topic has accepted whole must not be divided when a batch runs
    again.
    """
    if limit is None:
        return LONGEST_LIST_BYTES
    return max(1, min(LONGEST_LIST_BYTES, max(limit - _EVENT_BYTES, limit // 2)))


def longest_original(limit: int | None) -> int:
    """Return how many bytes a key or value in a dead letter may have; ``limit`` is that of the topic."""
    return LONGEST_BYTES if limit is None else max(0, min(LONGEST_BYTES, (limit - _DEAD_LETTER_BYTES) // 2))


def sizes(messages: pa.RecordBatch) -> Int64s:
    """Return the most bytes that each message has alone in a batch of records, uncompressed; int64[n]."""
    size = _BATCH_BYTES + _RECORD_BYTES + _lengths(messages.column("key")) + _lengths(messages.column("value"))
    headers = messages.column("headers").flatten()
    if messages.num_rows and len(headers):
        of_headers = _HEADER_BYTES + _lengths(headers.field("key")) + _lengths(headers.field("value"))
        size += of_headers.reshape(messages.num_rows, -1).sum(axis=1)
    return size


def are_too_large(messages: pa.RecordBatch, limits: Mapping[str, int]) -> Bools:
    """Return which messages their topic does not accept, bool[n]; ``limits`` are topic -> bytes."""
    topics = messages.column("topic").dictionary_encode()
    no_limit = np.iinfo(np.int64).max
    of_topics = np.array([limits.get(name, no_limit) for name in topics.dictionary.to_pylist()], dtype=np.int64)
    found: Bools = sizes(messages) > of_topics[topics.indices.to_numpy()]
    return found


def as_dead_letters(events: pa.RecordBatch, limits: Mapping[str, int]) -> pa.RecordBatch:
    """Return large events as input of `render_dead_letters`: they come from no topic, so their offset is -1."""
    n = events.num_rows
    topics = events.column("topic")
    messages = [
        f"event {event_id.decode()} has {size} bytes, and topic {topic!r} accepts at most {limits[topic]} in a record: "
        "set its max.message.bytes higher"
        for event_id, size, topic in zip(
            _first_headers(events), sizes(events).tolist(), topics.to_pylist(), strict=True
        )
    ]
    return pa.RecordBatch.from_pydict(
        {
            "key": events.column("key"),
            "value": events.column("value"),
            "topic": topics,
            "partition": pa.array([-1] * n, pa.int32()),
            "offset": pa.array([-1] * n, pa.int64()),
            "code": pa.repeat(EVENT_TOO_LARGE, n),
            "message": pa.array(messages, pa.string()),
            "feed": pa.array([_feed_of(event) for event in events.column("value").to_pylist()], pa.string()),
        }
    )


def _feed_of(event: bytes) -> str:
    """Return the feed that an event names; of a join, the left one if it names it."""
    read = json.loads(event)
    if "specversion" in read:  # the structured mode of CloudEvents
        read = read["data"]
    reading = read if "feed" in read else read.get("left", read.get("right"))
    return str(reading["feed"])


def _first_headers(events: pa.RecordBatch) -> list[bytes]:
    """Return the value of the first header of each event, which is its id."""
    return [headers[0]["value"] for headers in events.column("headers").to_pylist()]


def _lengths(column: pa.Array) -> Int64s:
    lengths: Int64s = pc.fill_null(pc.binary_length(column), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    return lengths
