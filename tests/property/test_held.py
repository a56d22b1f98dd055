"""The buffer of held readings against a list, with restarts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bmq.kernels.tables.hashing import hash_ids
from bmq.monitor.held_readings import HeldReadings
from bmq.records import NEVER, Attributes, Ids, Readings

pytestmark = pytest.mark.property

TEXTS = ('"g1"', '"g2"', "null")
# (event time, partition, attributes)
one = st.tuples(st.integers(0, 12), st.integers(0, 2), st.sampled_from(TEXTS))
# Readings, how far time goes on, and how the buffer came to be before them.
batches = st.lists(
    st.tuples(st.lists(one, max_size=9), st.integers(0, 4), st.sampled_from([None, "pages", "replica"])), max_size=8
)

Reading = tuple[int, int, str, int]  # and a number that no other has


def as_readings(rows: list[Reading]) -> Readings:
    times = np.array([row[0] for row in rows], dtype=np.int64)
    data = np.frombuffer(b"".join(b"%04d" % row[3] for row in rows), dtype=np.uint8)
    starts = np.arange(len(rows) + 1, dtype=np.int64) * 4
    codes = np.array([TEXTS.index(row[2]) for row in rows], dtype=np.int32)
    values = np.array([[row[3] for row in rows]], dtype=np.float64)
    partitions = np.array([row[1] for row in rows], dtype=np.int32)
    return Readings(
        Ids(starts, data, hash_ids(starts, data)), times, times + 1, values, Attributes(codes, TEXTS), partitions
    )


def as_rows(readings: Readings | None) -> list[Reading]:
    if readings is None:
        return []
    assert readings.partitions is not None
    assert readings.attributes is not None
    texts = [readings.attributes.texts[code] for code in readings.attributes.codes]
    numbers = [int(readings.ids.text(i)) for i in range(len(readings))]
    assert numbers == readings.values[0].tolist()
    assert np.array_equal(readings.record_times, readings.event_times + 1)
    return list(zip(readings.event_times.tolist(), readings.partitions.tolist(), texts, numbers, strict=True))


@given(batches=batches)
def test_what_is_released_is_what_is_due_in_order_and_a_copy_holds_the_same(
    batches: list[tuple[list[tuple[int, int, str]], int, str | None]],
) -> None:
    held, replica = HeldReadings(), HeldReadings()
    waiting: list[Reading] = []
    settled, number = NEVER, 0
    for batch, further, restart in batches:
        if restart == "pages":
            copy = HeldReadings()
            for page in held.pages(3):
                assert len(page) <= 3
                copy.restore(page, settled)
            held = copy
        elif restart == "replica":
            held, replica = replica, held
        arrived = []
        for time, partition, text in sorted(batch, key=lambda row: row[1]):
            arrived.append((time, partition, text, number))
            number += 1
        in_time = [row for row in arrived if row[0] >= settled]
        waiting += in_time
        before, settled = settled, further if settled == NEVER else settled + further

        n_late = held.add(as_readings(arrived), before) if arrived else 0
        released = as_rows(held.release(settled))
        replica.restore(held.take_new(), settled)

        assert n_late == len(arrived) - len(in_time)
        assert released == sorted((row for row in waiting if row[0] < settled), key=lambda row: (row[:2], row[3]))
        waiting = [row for row in waiting if row[0] >= settled]
        assert len(held) == len(replica) == len(waiting)
