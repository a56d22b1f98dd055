"""`bmq.wire.large_messages`: what is larger than a topic takes."""

import pyarrow as pa
import pytest

from bmq.wire.dead_letters import LONGEST_BYTES, render_dead_letters
from bmq.wire.event_messages import LONGEST_LIST_BYTES
from bmq.wire.large_messages import are_too_large, as_dead_letters, longest_list, longest_original, sizes
from bmq.wire.outgoing import MESSAGE_SCHEMA, header_column, message_batch


def messages_of(topics: list[str], values: list[str | None]) -> pa.RecordBatch:
    n = len(topics)
    headers = header_column(n, ("event_id", "kind"), pa.array([f"id{i}" for i in range(n)]), "border")
    return message_batch(pa.array(topics), pa.array(["key"] * n), pa.array(values, pa.string()), headers)


def test_each_topic_has_its_own_limit_and_some_have_none() -> None:
    messages = messages_of(["a", "b", "a", "c"], ["x" * 500, "x" * 500, "x" * 900, "x" * 10_000])
    assert are_too_large(messages, {"a": 1_000, "b": 500}).tolist() == [False, True, True, False]


def test_a_size_covers_what_kafka_adds() -> None:
    (size,) = sizes(messages_of(["a"], ["x" * 500])).tolist()
    in_headers = len("event_id") + len("id0") + len("kind") + len("border")
    assert 500 + 3 + in_headers < size < 500 + 3 + in_headers + 150


def test_a_message_may_lack_its_value_and_its_headers() -> None:
    columns = {"topic": ["a", "a"], "key": [b"k", b"k"], "value": [None, b"v"], "headers": [[], []]}
    bare = pa.RecordBatch.from_pydict(columns, schema=MESSAGE_SCHEMA)
    none, one = sizes(bare).tolist()
    assert one == none + 1
    assert sizes(bare.slice(0, 0)).tolist() == []


def test_a_large_event_is_a_dead_letter_from_no_topic() -> None:
    events = [f'{{"feed":"f","note":"{"x" * 500}"}}', f'{{"left":{{"feed":"l"}},"note":"{"y" * 600}"}}']
    letters = as_dead_letters(messages_of(["a", "a"], list(events)), {"a": 200})
    rendered = render_dead_letters(letters, topic="dead", longest=550)

    assert letters.column("feed").to_pylist() == ["f", "l"]
    assert rendered.column("value").to_pylist() == [events[0].encode(), None]
    assert rendered.column("topic").to_pylist() == ["dead", "dead"]
    headers = [{one["key"]: one["value"].decode() for one in row} for row in rendered.column("headers").to_pylist()]
    assert [(row["code"], row["topic"], row["partition"]) for row in headers] == [("event_too_large", "a", "-1")] * 2
    assert all(
        f"event id{i} has" in row["message"] and "at most 200 in" in row["message"] for i, row in enumerate(headers)
    )


@pytest.mark.parametrize("limit", [1, 5_000, 100_000, 10**9])
def test_parts_are_never_longer_than_without_a_limit_and_never_empty(limit: int) -> None:
    assert 0 < longest_list(limit) <= longest_list(None) == LONGEST_LIST_BYTES
    assert 0 <= longest_original(limit) <= longest_original(None) == LONGEST_BYTES
