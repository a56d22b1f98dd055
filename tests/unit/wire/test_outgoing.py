"""`bmq.wire.outgoing`: messages that go to another topic."""

import pyarrow as pa

from bmq.wire.outgoing import MESSAGE_SCHEMA, divert, header_column, message_batch


def test_messages_of_a_missing_topic_go_to_another_one_in_the_same_order() -> None:
    topics, texts = ["events", "gone", "own", "gone"], ["a", "b", "c", "d"]
    headers = header_column(4, ("event_id", "kind"), pa.array(texts), "border")
    messages = message_batch(pa.array(topics), pa.array(["k1", "k2", None, "k4"]), pa.array(texts), headers)

    kept, diverted = divert(messages, {"gone": "why", "unused": "no"}, "events")

    assert kept.to_pylist() == [messages.to_pylist()[row] for row in (0, 2)]
    assert diverted.schema == MESSAGE_SCHEMA
    for row, found in zip((1, 3), diverted.to_pylist(), strict=True):
        before = messages.to_pylist()[row]
        headers = [{"key": "output_topic", "value": b"gone"}, {"key": "output_topic_error", "value": b"why"}]
        assert found == before | {"topic": "events", "headers": [*before["headers"], *headers]}


def test_messages_without_headers_get_the_two() -> None:
    columns = {"topic": ["gone"], "key": [b"k"], "value": [None], "headers": [[]]}
    (diverted,) = divert(pa.RecordBatch.from_pydict(columns, schema=MESSAGE_SCHEMA), {"gone": "why"}, "events")
    assert diverted.to_pylist() == [
        {
            "topic": "events",
            "key": b"k",
            "value": None,
            "headers": [{"key": "output_topic", "value": b"gone"}, {"key": "output_topic_error", "value": b"why"}],
        }
    ]


def test_messages_for_topics_that_are_there_stay_as_they_are() -> None:
    columns = {"topic": ["own"], "key": [b"k"], "value": [b"v"], "headers": [[]]}
    messages = pa.RecordBatch.from_pydict(columns, schema=MESSAGE_SCHEMA)
    assert list(divert(messages, {"gone": "why"}, "events")) == [messages]
