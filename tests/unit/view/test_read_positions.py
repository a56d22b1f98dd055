"""Records to positions, and no more a second than the page can read."""

from dataclasses import dataclass

from confluent_kafka import TIMESTAMP_CREATE_TIME

from bmq.records import Feed
from bmq.view.read_positions import PositionReader

FEED = Feed("plane", "plane", "id", ("x", "y"), "ts")


@dataclass
class Record:
    """A message of the client, as far as it is read."""

    written: bytes

    def key(self) -> bytes:
        return b"k"

    def value(self) -> bytes:
        return self.written

    def timestamp(self) -> tuple[int, int]:
        return TIMESTAMP_CREATE_TIME, 1700000000000


def record(n: int) -> Record:
    return Record(b'{"id": "a%d", "ts": 1700000000000, "x": %d, "y": 0}' % (n, n))


def test_what_is_no_reading_is_left_out() -> None:
    reader = PositionReader(FEED)

    found, skipped = reader.read([record(1), Record(b"nonsense"), record(2)])  # type: ignore[list-item]

    assert found == [("a1", 1700000000000, (1.0, 0.0)), ("a2", 1700000000000, (2.0, 0.0))]
    assert skipped == 0


def test_above_the_most_a_second_the_newest_are_read_and_the_others_counted() -> None:
    now = [5.0]
    reader = PositionReader(FEED, most=3, clock=lambda: now[0])

    first, skipped = reader.read([record(n) for n in range(5)])  # type: ignore[misc]
    second, more = reader.read([record(5)])  # type: ignore[list-item]
    now[0] = 6.0
    third, none = reader.read([record(6)])  # type: ignore[list-item]

    assert [stream_id for stream_id, _, _ in first] == ["a2", "a3", "a4"]
    assert (skipped, second, more) == (2, [], 1)
    assert ([stream_id for stream_id, _, _ in third], none) == (["a6"], 0)
