"""A path into a JSON record gives what a member with the whole path as its name gives."""

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bmq.errors import DeadLetterCode
from bmq.records import Feed
from bmq.wire.readings import Decoded, Decoder
from bmq.wire.readings_fast import BinaryColumn, FastDecoder
from tests.decoded_readings import shown

FEED = Feed("f", "f", "a.id", ("x", "a.x", "a.b.x"), "a.b.ts", attributes=("a.kind", "a.b"))
FIELDS = ("a.id", "x", "a.x", "a.b.x", "a.b.ts", "a.kind", "a.b")

values = st.sampled_from([1, 2.5, "v", "é", None, True, [], {}, [{"x": 1}], {"x": 1}, 1_700_000_000_000])
inner = st.dictionaries(st.sampled_from(["x", "ts", "kind"]), values)
middle = st.dictionaries(st.sampled_from(["id", "x", "kind", "b"]), values | inner)
documents = st.dictionaries(st.sampled_from(["x", "a", "a.x", "a.b", "a.b.x"]), values | middle)
good = st.builds(
    lambda x, b: {"x": x, "a": {"id": "v", "x": x, "kind": "k", "b": {"ts": 1_700_000_000_000, "x": x} | b}},
    st.sampled_from([1, 2.5, -0.0]),
    inner,
)


def flat(document: dict[str, Any]) -> dict[str, Any]:
    """Return a document with a member for each field, by the definition: its whole name, or else name after name."""

    def at(place: Any, names: list[str]) -> Any:
        if not names:
            return place
        return at(place[names[0]], names[1:]) if isinstance(place, dict) and names[0] in place else None

    return {name: document[name] if name in document else at(document, name.split(".")) for name in FIELDS}


def decode(documents: list[dict[str, Any]]) -> Decoded:
    records = pa.array([json.dumps(document).encode() for document in documents], pa.binary())
    return Decoder(FEED).decode(None, records, np.full(len(documents), 1_700_000_000_000))


@given(batch=st.lists(good | documents, min_size=1, max_size=6))
@example([{"x": 1, "a.x": 2, "a": {"id": "v", "x": 3, "b": {"ts": 1_700_000_000_000, "x": 4}}}])
def test_a_path_is_the_member_that_it_leads_to(batch: list[dict[str, Any]]) -> None:
    nested, expected = decode(batch), decode([flat(document) for document in batch])

    assert shown(nested) == shown(expected)
    assert nested.bad == expected.bad


# Without this, a scan that found no path would pass the rule above.
def test_records_with_paths_are_decoded_without_python() -> None:
    text = '{"x": 1, "a": {"id": "v", "x": 2.5, "kind": "k", "b": {"x": -1, "ts": 1700000000000}}}'
    values = pa.array([text.encode()] * 2, pa.binary())

    columns = FastDecoder(FEED, 1_000).decode(None, BinaryColumn.of(values), np.zeros(2, np.int64))

    assert columns.plain.all()
    assert columns.values.tolist() == [[1.0, 1.0], [2.5, 2.5], [-1.0, -1.0]]


@pytest.mark.parametrize("a", [None, 5, "text", [{"x": 1}], {}, {"x": None}])
def test_a_path_that_leads_nowhere_is_an_absent_field(a: object) -> None:
    (bad,) = decode([{"x": 1, "a": a, "a.id": "v", "a.b.ts": 1_700_000_000_000}]).bad

    assert bad.code is DeadLetterCode.MISSING_FIELD
    assert "a.x is absent or null" in bad.message
