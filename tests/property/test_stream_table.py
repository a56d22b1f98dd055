"""The stream table against a dict: order, lateness, equal times, ids that share a hash."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bmq.index.stream_table import StreamTable
from bmq.kernels.tables.hashing import hash_ids
from bmq.kernels.tables.stream_rows import RECOUNTED
from bmq.records import NEVER, Ids, Readings

pytestmark = pytest.mark.property

stream_ids = st.sampled_from(["a", "b", "ab", "ba", "é", "a much longer id than the others have"])
readings = st.lists(st.tuples(stream_ids, st.integers(0, 5), st.integers(-3, 3).map(float)), max_size=12)


def ids_of(texts: list[str], hashes: list[int] | None = None) -> Ids:
    encoded = [text.encode() for text in texts]
    starts = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    data = np.frombuffer(b"".join(encoded), dtype=np.uint8)
    found = hash_ids(starts, data) if hashes is None else np.array(hashes, dtype=np.uint64)
    return Ids(starts, data, found)


def as_readings(batch: list[tuple[str, int, float]]) -> Readings:
    times = np.array([time for _, time, _ in batch], dtype=np.int64)
    return Readings(ids_of([s for s, _, _ in batch]), times, times, np.array([[v for _, _, v in batch]]))


@given(batches=st.lists(readings, max_size=6))
def test_each_reading_follows_the_one_that_the_definition_says(
    batches: list[list[tuple[str, int, float]]],
) -> None:
    table = StreamTable(1)
    last: dict[str, tuple[int, float]] = {}
    at_that_time: Counter[tuple[str, int]] = Counter()
    for batch in batches:
        chained = table.apply(as_readings(batch))
        expected: dict[str, list[tuple[object, ...]]] = {}
        n_late = 0
        for row, (stream, time, value) in sorted(enumerate(batch), key=lambda item: item[1][1]):
            before = last.get(stream)
            if before is not None and time < before[0]:
                n_late += 1
                continue
            expected.setdefault(stream, []).append((row, value, before, at_that_time[stream, time]))
            at_that_time[stream, time] += 1
            last[stream] = (time, value)

        found: dict[str, list[tuple[object, ...]]] = {}
        for i, slot in enumerate(chained.slots.tolist()):
            before = (int(chained.previous_times[i]), float(chained.previous_values[0, i]))
            at = (int(chained.rows[i]), float(chained.values[0, i]))
            found.setdefault(table.text_of(slot), []).append(
                (*at, before if chained.moved[i] else None, int(chained.ordinals[i]))
            )
        assert found == expected
        assert chained.n_late == n_late
        table._check()


@given(batches=st.lists(readings, max_size=6))
def test_touched_rows_make_a_table_that_knows_the_same(batches: list[list[tuple[str, int, float]]]) -> None:
    table, replica = StreamTable(1), StreamTable(1)
    for batch in batches:
        table.apply(as_readings(batch))
        replica.put_rows(table.take_touched())

        slots = table.seen_slots()
        rows = table.rows_of(slots)
        copied = replica.rows_of(replica.slots_of(rows.ids))
        assert replica.n_seen == table.n_seen == slots.size
        assert np.array_equal(rows.event_times, copied.event_times)
        assert np.array_equal(rows.ordinals, copied.ordinals)
        assert np.array_equal(rows.values, copied.values)


def test_two_ids_with_the_same_hash_are_two_streams() -> None:
    table = StreamTable(1)

    slots = table.slots_of(ids_of(["a", "b", "a"], hashes=[7, 7, 7]))

    assert slots.tolist() == [0, 1, 0]


def test_a_table_grows_past_its_first_size_and_forgets_nobody() -> None:
    table = StreamTable(2)
    texts = [f"stream-{n}" for n in range(5_000)]

    slots = table.slots_of(ids_of(texts))

    assert slots.tolist() == list(range(5_000))
    assert (table.last_times == NEVER).all()
    table._check()


def test_a_stream_that_is_known_numbers_its_own_readings_however_far_behind_it_is() -> None:
    table = StreamTable(n_dims=1, ttl_ms=10)
    table.apply(as_readings([("a", 1, 0.0), ("z", 100, 0.0)]))

    # "a" is known although the clock is far ahead, as a lag would have it. Of "c" nobody knows whether it was there.
    chained = table.apply(as_readings([("a", 1, 0.0), ("c", 3, 0.0), ("a", 2, 0.0), ("c", 3, 0.0)]), settled=100)
    ordinals = dict(zip(chained.rows.tolist(), chained.ordinals.tolist(), strict=True))
    assert (ordinals[0], ordinals[2]) == (1, 0)
    assert RECOUNTED <= ordinals[1] < ordinals[3]
    assert table.n_recounted == 2

    table.forget(table.slots_of(ids_of(["a"])))
    assert table.apply(as_readings([("a", 2, 0.0)]), settled=100).ordinals[0] == RECOUNTED + 2
