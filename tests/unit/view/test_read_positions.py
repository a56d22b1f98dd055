"""Records to positions, and no more a second than the page can read."""

from dataclasses import dataclass

from confluent_kafka import TIMESTAMP_CREATE_TIME

from bmq.kafka_io.schema_registry import RegistryAddress, SchemaRegistry
from bmq.records import Feed, Format
from bmq.view.read_positions import PositionReader
from tests.registry import Registry, framed

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


def test_the_items_of_a_list_are_positions_unless_one_is_no_reading() -> None:
    reader = PositionReader(Feed("plane", "plane", "id", ("p.x",), readings="p"))
    good, wrong = (Record(b'{"id": "a", "p": [{"x": 1}, {"x": %b}]}' % second) for second in (b"2", b"null"))

    found, _ = reader.read([good, wrong])  # type: ignore[list-item]

    assert found == [("a", 1700000000000, (1.0,)), ("a", 1700000000000, (2.0,))]


def test_records_that_name_their_schemas_are_positions_and_a_silent_registry_is_not_waited_for() -> None:
    registry = Registry()
    fields = [{"name": "id", "type": "string"}, {"name": "x", "type": "int"}]
    registry.register(7, {"type": "record", "name": "R", "fields": fields})
    known, unknown = Record(framed(7, b"\2a\4")), Record(framed(8, b"\2b\4"))
    feed = Feed("line", "line", "id", ("x",), format=Format.AVRO, registry=True)
    reader = PositionReader(feed, SchemaRegistry(RegistryAddress(registry.url)))
    registry.start()

    first, _ = reader.read([known])  # type: ignore[list-item]
    registry.stop()
    second, _ = reader.read([unknown, known])  # type: ignore[list-item]

    assert first == second == [("a", 1700000000000, (2.0,))]
