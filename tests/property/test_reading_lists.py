"""A record with a list of readings gives what a record for each of its items gives, or it is one dead letter."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bmq.errors import DeadLetterCode, ReadingError
from bmq.kernels.text.json_items import find_items
from bmq.records import Feed
from bmq.wire import list_items, reading_lists
from bmq.wire.list_items import ExactListDecoder
from bmq.wire.reading_lists import ListDecoder
from bmq.wire.readings import BadRecord, Decoder
from tests.decoded_readings import shown

RECORD_TIME = 1_700_000_000_000
LIMIT = 500  # small, so that records meet it
FEEDS = {
    "stream outside": Feed("f", "f", "id", ("p.x", "p.at.y"), "p.ts", attributes=("kind", "p.kind"), readings="p"),
    "stream inside": Feed("f", "f", "p.id", ("p.x",), "ts", readings="p"),
    "deep list": Feed("f", "f", "@key", ("a.p.x",), None, attributes=("a.kind",), readings="a.p"),
}

numbers: st.SearchStrategy[Any] = st.sampled_from([1, 2.5, -0.0, 10**20, "1", None, [], {}])
good_items = st.fixed_dictionaries(
    {
        "x": st.sampled_from([1, 2.5]),
        "at": st.just({"y": 3}),
        "ts": st.just(RECORD_TIME),
        "id": st.sampled_from(["a", "é"]),
    },
    optional={"kind": st.sampled_from(["k", 5, None, [1]])},
)
items = (
    good_items | good_items | good_items | st.dictionaries(st.sampled_from(["x", "ts", "id", "at"]), numbers) | numbers
)
lists = st.lists(good_items, max_size=4) | st.lists(items, max_size=4) | numbers
documents = st.fixed_dictionaries(
    {
        "id": st.sampled_from(["v", 7, "v", None]),
        "ts": st.just(RECORD_TIME),
        "p": lists,
        "a": st.fixed_dictionaries({"p": lists}),
    },
    optional={
        "kind": st.sampled_from(["k", "]", None]),
        "other": st.sampled_from([[1, [2]], '[{"x": 1}]', {"p": [1]}]),
    },
)
texts = st.builds(
    lambda document, indent, ascii_only: json.dumps(document, indent=indent, ensure_ascii=ascii_only).encode(),
    documents,
    st.sampled_from([None, 1]),
    st.booleans(),
)
odd = st.builds(lambda text: text.replace(b'"other"', b'"\\u006fther"').replace(b'"x"', b'"\\u0078"'), texts)
damaged = st.builds(lambda text, n: text[: n % len(text)], texts, st.integers(0, 500))
records = st.one_of(
    texts, texts, texts, odd, damaged, st.sampled_from([None, b"", b"[]", b'{"p": []}', b'{"p":[{"x":1}'])
)


def by_definition(
    feed: Feed, key: bytes | None, record: bytes | None
) -> tuple[list[tuple[object, ...]], DeadLetterCode | None]:
    """Return the readings of a record, or why it is none: each item is put in the place of the list."""
    of_items = replace(feed, readings=None)
    try:
        document = json.loads(record or b"")
    except ValueError:
        return [], DeadLetterCode.NOT_JSON
    if not isinstance(document, dict):
        return [], DeadLetterCode.NOT_JSON
    if record is None or len(record) > LIMIT:
        return [], DeadLetterCode.TOO_LARGE
    place, names = document, str(feed.readings).split(".")
    for name in names[:-1]:
        place = place.get(name) or {}
    found = place.get(names[-1])
    if found is None or not isinstance(found, list):
        return [], DeadLetterCode.MISSING_FIELD if found is None else DeadLetterCode.WRONG_TYPE
    readings = []
    for item in found:
        place[names[-1]] = item
        decoded = decode(Decoder(of_items, 10_000), [key], [json.dumps(document).encode()])
        if decoded.bad:
            return [], decoded.bad[0].code
        readings += shown(decoded)
    return [reading[1:] for reading in readings], None


def decode(decoder: Any, keys: list[bytes | None], records: list[bytes | None]) -> Any:
    return decoder.decode(
        pa.array(keys, pa.binary()), pa.array(records, pa.binary()), np.full(len(records), RECORD_TIME)
    )


@pytest.mark.parametrize("name", FEEDS)
@given(batch=st.lists(records, max_size=6), key=st.sampled_from([b"key", b"key", None]))
def test_a_list_is_its_items_one_by_one(name: str, batch: list[bytes | None], key: bytes | None) -> None:
    feed = FEEDS[name]

    decoded = decode(ListDecoder(feed, LIMIT), [key] * len(batch), batch)

    expected = [by_definition(feed, key, record) for record in batch]
    assert shown(decoded) == [(row, *reading) for row, (readings, _) in enumerate(expected) for reading in readings]
    assert [(bad.row, bad.code) for bad in decoded.bad] == [
        (row, code) for row, (_, code) in enumerate(expected) if code
    ]


@pytest.mark.parametrize("name", FEEDS)
@given(batch=st.lists(records, max_size=6))
def test_a_batch_decodes_like_its_records_one_by_one(name: str, batch: list[bytes | None]) -> None:
    decoded = decode(ListDecoder(FEEDS[name], LIMIT), [b"key"] * len(batch), batch)

    exact = ExactListDecoder(FEEDS[name], LIMIT)
    good, bad = [], []
    for row, record in enumerate(batch):
        try:
            found = exact.decode(b"key", record, RECORD_TIME)
        except ReadingError as error:
            bad.append(BadRecord(row, error.code, str(error)))
        else:
            good += [
                (row, one.stream_id.decode(), one.event_time, repr(list(one.values)), one.attributes) for one in found
            ]
    assert shown(decoded) == good
    assert decoded.bad == bad


def test_one_item_that_is_no_reading_makes_the_record_a_dead_letter() -> None:
    feed = FEEDS["stream inside"]
    good = b'{"ts": 1700000000000, "p": [{"id": "a", "x": 1}, {"id": "b", "x": 2}]}'
    wrong = good.replace(b'"x": 2', b'"x": "2"')

    decoded = decode(ListDecoder(feed), [None] * 3, [good, wrong, good])

    assert decoded.rows.tolist() == [0, 0, 2, 2]
    assert [decoded.readings.ids.text(i) for i in range(4)] == ["a", "b", "a", "b"]
    (bad,) = decoded.bad
    assert (bad.row, bad.code) == (1, DeadLetterCode.WRONG_TYPE)
    assert bad.message.startswith("item 1 of p: p.x is '2'") or bad.message.startswith('item 1 of p: p.x is "2"')


def test_ordinary_lists_are_found_without_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ExactListDecoder, "records_of_items", None)
    record = b'{"ts": 1700000000000, "p": [{"id": "a", "x": 1}, {"id": "b", "x": 2}], "note": "[]"}'

    assert decode(ListDecoder(FEEDS["stream inside"]), [None] * 2, [record] * 2).rows.tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize("spelling", [b'"note"', b'"n\\u006fte"'])
def test_a_record_whose_items_would_take_too_much_is_a_dead_letter(
    monkeypatch: pytest.MonkeyPatch, spelling: bytes
) -> None:
    for module in (list_items, reading_lists):
        monkeypatch.setattr(module, "MOST_ITEM_BYTES", 2_000)
    few = b'{%b: "%b", "ts": 1700000000000, "p": [{"id": "a", "x": 1}]}' % (spelling, b"n" * 300)
    many = few.replace(b'[{"id"', b"[" + b'{"id": "b", "x": 2}, ' * 9 + b'{"id"')

    decoded = decode(ListDecoder(FEEDS["stream inside"]), [None] * 9, [few, many, few] * 3)

    assert decoded.rows.tolist() == [0, 2, 3, 5, 6, 8]
    assert [(bad.row, bad.code) for bad in decoded.bad] == [(row, DeadLetterCode.TOO_LARGE) for row in (1, 4, 7)]
    assert "has 10 items in p" in decoded.bad[0].message


@given(
    parts=st.lists(st.lists(st.sampled_from(["1", '"a,]"', "[1, [2]]", '{"a": [1]}', "null"]), max_size=40), max_size=3)
)
def test_items_are_found_in_any_list(parts: list[list[str]]) -> None:
    texts = [f"[ {' , '.join(part)} ]" for part in parts]
    ends = np.cumsum([len(text) for text in texts], dtype=np.int64)
    data = np.frombuffer("".join(texts).encode(), np.uint8)

    starts, begins, item_ends = find_items(ends - np.array([len(text) for text in texts], dtype=np.int64), ends, data)

    found = [bytes(data[begin:end]).decode() for begin, end in zip(begins, item_ends, strict=True)]
    assert [found[starts[i] : starts[i + 1]] for i in range(len(parts))] == parts
