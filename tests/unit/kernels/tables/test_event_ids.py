"""Event ids: the formula that stands in the docs, and what tells two events apart."""

import numpy as np
import pytest

from bmq.kernels.tables.event_ids import hash_128
from bmq.records import Reason, Sign
from bmq.wire.event_messages import render_crossings
from tests.crossings import FEED, Row, make_crossings, make_ids, query, read_values

MASK = 2**64 - 1


def murmur(text: bytes) -> bytes:
    """MurmurHash3_x64_128 with seed 0, after the public-domain C++, as 16 big-endian bytes."""
    h1 = h2 = 0
    for at in range(0, len(text) + 1, 16):
        block = text[at : at + 16].ljust(16, b"\0")
        k1, k2 = int.from_bytes(block[:8], "little"), int.from_bytes(block[8:], "little")
        x1 = rotated(k1 * 0x87C37B91114253D5 & MASK, 31) * 0x4CF5AD432745937F & MASK
        x2 = rotated(k2 * 0x4CF5AD432745937F & MASK, 33) * 0x87C37B91114253D5 & MASK
        if at + 16 > len(text):
            h1, h2 = h1 ^ x1, h2 ^ x2
            break
        h1 = (rotated(h1 ^ x1, 27) + h2) * 5 + 0x52DCE729 & MASK
        h2 = (rotated(h2 ^ x2, 31) + h1) * 5 + 0x38495AB5 & MASK
    h1, h2 = h1 ^ len(text), h2 ^ len(text)
    h1 = h1 + h2 & MASK
    h2 = h2 + h1 & MASK
    h1, h2 = finalized(h1), finalized(h2)
    h1 = h1 + h2 & MASK
    h2 = h2 + h1 & MASK
    return h1.to_bytes(8, "big") + h2.to_bytes(8, "big")


def rotated(word: int, bits: int) -> int:
    return (word << bits | word >> (64 - bits)) & MASK


def finalized(word: int) -> int:
    word = (word ^ word >> 33) * 0xFF51AFD7ED558CCD & MASK
    word = (word ^ word >> 33) * 0xC4CEB9FE1A85EC53 & MASK
    return word ^ word >> 33


def words(hashed: bytes) -> bytes:
    """The two words of a hash as the little-endian bytes that are hashed again."""
    return hashed[:8][::-1] + hashed[8:][::-1]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "00000000000000000000000000000000"),
        ("hello", "cbd8a7b341bd9b025b1e906a48ae1d19"),
        ("The quick brown fox jumps over the lazy dog", "e34bbc7bbc071b6c7a433ca9c49a9347"),
    ],
)
def test_the_hash_is_the_published_one(text: str, expected: str) -> None:
    ids = make_ids([text])
    first, second = hash_128(ids.starts, ids.bytes)[0]
    assert f"{first:016x}{second:016x}" == expected
    assert murmur(text.encode()).hex() == expected


def test_a_text_of_any_length_hashes_as_in_the_reference() -> None:
    texts = ["abcdefghijklmnopqrstuvwxyz0123456789é"[:length] for length in range(38)]
    ids = make_ids(texts)
    hashed = hash_128(ids.starts, ids.bytes)
    assert [hash_.astype(">u8").tobytes() for hash_ in hashed] == [murmur(text.encode()) for text in texts]


def test_an_event_id_is_the_hash_that_the_docs_give() -> None:
    row = Row(stream="v7", query=query("q1", 18), sign=Sign.ENTERED, event_time=1_700_000_000_000, ordinal=3)
    numbers = np.array([1_700_000_000_000, 2 * 3 + 1], dtype="<i8").tobytes()
    expected = murmur(words(murmur(b"border\0vehicles\x0018\0q1")) + words(murmur(b"v7")) + numbers)
    assert event_id(row) == expected.hex()


def test_an_event_id_never_changes() -> None:
    # Consumers have seen these: another id for the same event would be a repeat they cannot drop.
    assert event_id(Row()) == "ba44d3ed3eb15a11ba62fb3715afdf4f"
    assert event_id(Row(), layout="reading") == "c9810a4f0e59a1cae3005c6f9f58678e"


@pytest.mark.parametrize(
    "other",
    [
        Row(stream="v8"),
        Row(query=query("q2")),
        Row(query=query(version=19)),
        Row(sign=Sign.LEFT),
        Row(event_time=1_700_000_000_001),
        Row(ordinal=1),
    ],
)
def test_events_that_differ_in_one_thing_have_different_ids(other: Row) -> None:
    assert event_id(other) != event_id(Row())


def test_two_edits_after_one_reading_have_different_ids_under_layout_reading() -> None:
    left = Row(sign=Sign.LEFT, reason=Reason.QUERY_UPDATED)
    entered = Row(sign=Sign.ENTERED, reason=Reason.QUERY_UPDATED)
    assert event_id(left, layout="reading") != event_id(entered, layout="reading")


def test_the_same_crossing_has_the_same_id_whatever_its_reason_value_and_company() -> None:
    same = Row(reason=Reason.FIRST_SEEN, value=(1.0, 1.0), query=query(tags='{"shop":"17"}'))
    many = render_crossings(make_crossings([Row(stream="v1"), same, Row(stream="v2")]), FEED, topic="t")
    assert read_values(many)[1]["event_id"] == event_id(Row())


def event_id(row: Row, **options: str) -> str:
    messages = render_crossings(make_crossings([row]), FEED, topic="t", **options)  # type: ignore[arg-type]
    event_id = read_values(messages)[0]["event_id"]
    assert isinstance(event_id, str)
    return event_id
