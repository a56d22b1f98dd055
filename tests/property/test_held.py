"""The buffer of held readings against a list, with streams that are behind and with restarts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bmq.index.stream_table import StreamTable
from bmq.kernels.tables.hashing import hash_ids
from bmq.monitor.held_readings import HeldReadings
from bmq.records import NEVER, Attributes, Ids, Readings

pytestmark = pytest.mark.property

TEXTS = ('"g1"', '"g2"', "null")
MAX_LATENESS = 3
# (event time, partition, stream, attributes)
one = st.tuples(st.integers(0, 12), st.integers(0, 2), st.sampled_from("abc"), st.sampled_from(TEXTS))
# Readings, how far the settled time goes on, and how the buffer came to be before them.
batches = st.lists(
    st.tuples(st.lists(one, max_size=9), st.integers(0, 4), st.sampled_from([None, "pages", "replica"])), max_size=8
)

Reading = tuple[int, int, str, str, int]  # and a number that no other has


class Buffer:
    """Held readings, and the stream table to which they are applied."""

    def __init__(self) -> None:
        self.streams = StreamTable(1)
        self.held = HeldReadings(self.streams, MAX_LATENESS)

    def copy(self, settled: int) -> "Buffer":
        copy = Buffer()
        copy.streams.put_rows(self.streams.rows_of(self.streams.seen_slots()))
        for page in self.held.pages(3):
            assert len(page) <= 3
            copy.held.restore(page, settled)
        return copy


class Definition:
    """The same as lists: what is held, and the newest reading of each stream."""

    def __init__(self) -> None:
        self.held: list[tuple[Reading, int]] = []  # with its lag
        self.applied: dict[str, int] = {}

    def newest(self, stream: str) -> int:
        return max([self.applied.get(stream, NEVER), *(row[0] for row, _ in self.held if row[2] == stream)])

    def add(self, rows: list[Reading], before: int) -> int:
        """Hold readings in the order of their partitions; return how many were late."""
        arrived: list[Reading] = []
        for row in rows:
            earlier = [other[0] for other in arrived if (other[1], other[2]) == (row[1], row[2])]
            if row[0] + MAX_LATENESS >= max([self.newest(row[2]), *earlier]):
                arrived.append(row)
        self.held += [(row, max(0, before - row[0])) for row in arrived]
        return len(rows) - len(arrived)

    def release(self, settled: int) -> list[Reading]:
        newest = {row[2]: self.newest(row[2]) for row, _ in self.held}
        turns = [row[0] + lag < settled or row[0] + MAX_LATENESS < newest[row[2]] for row, lag in self.held]
        released = [row for (row, _), turn in zip(self.held, turns, strict=True) if turn]
        self.held = [one for one, turn in zip(self.held, turns, strict=True) if not turn]
        for time, _, stream, _, _ in released:
            self.applied[stream] = max(self.applied.get(stream, NEVER), time)
        return sorted(released, key=lambda row: (row[:2], row[4]))


def as_readings(rows: list[Reading]) -> Readings:
    times = np.array([row[0] for row in rows], dtype=np.int64)
    data = np.frombuffer("".join(row[2] for row in rows).encode(), dtype=np.uint8)
    starts = np.arange(len(rows) + 1, dtype=np.int64)
    codes = np.array([TEXTS.index(row[3]) for row in rows], dtype=np.int32)
    values = np.array([[row[4] for row in rows]], dtype=np.float64)
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
    streams = [readings.ids.text(i) for i in range(len(readings))]
    assert np.array_equal(readings.record_times, readings.event_times + 1)
    numbers = [int(number) for number in readings.values[0]]
    return list(zip(readings.event_times.tolist(), readings.partitions.tolist(), streams, texts, numbers, strict=True))


@given(batches=batches)
def test_what_is_released_is_what_has_its_turn_in_order_and_a_copy_holds_the_same(
    batches: list[tuple[list[tuple[int, int, str, str]], int, str | None]],
) -> None:
    buffer, replica, definition = Buffer(), Buffer(), Definition()
    settled, number, clock = NEVER, 0, NEVER
    for batch, further, restart in batches:
        if restart == "pages":
            buffer = buffer.copy(settled)
        elif restart == "replica":
            buffer, replica = replica, buffer
        arrived = []
        for row in sorted(batch, key=lambda row: row[1]):
            arrived.append((*row, number))
            number += 1
        # As a clock does: it is at least as far as the newest reading.
        before, clock = settled, max([clock, *(row[0] for row in arrived)])
        clock = clock if clock == NEVER else clock + further
        settled = clock if clock == NEVER else clock - MAX_LATENESS
        n_late = definition.add(arrived, before)
        expected = definition.release(settled)

        released, found_late = buffer.held.advance(as_readings(arrived) if arrived else None, before, settled)
        if released is not None:
            buffer.streams.apply(released)
        replica.streams.put_rows(buffer.streams.take_touched())
        replica.held.restore(buffer.held.take_new(), settled)

        assert found_late == n_late
        assert as_rows(released) == expected
        assert len(buffer.held) == len(replica.held) == len(definition.held)
