"""What a shard makes of the rows that reach it in a batch."""

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from bmq.job.frame_rows import DATA_LOSS, FRAME_SCHEMA, Kind
from bmq.job.received import Frames, read_frames, rows_of
from bmq.records import NEVER, Clock, Delete, Readings
from bmq.wire.frames import pack_commands, pack_dead_letters, pack_readings
from tests.crossings import make_ids


def row(kind: Kind, **columns: Any) -> dict[str, Any]:
    usual = {"shard": 0, "kind": int(kind), "feed": "f", "partition": 0, "first_offset": 0, "next_offset": 0}
    return usual | {"frame": b"", "earliest": NEVER, "latest": NEVER, "place": ""} | columns


def readings_row(*times: int, partition: int = 0, first_offset: int = 0, **columns: Any) -> dict[str, Any]:
    """Return a row of a shard that got these readings; ``columns`` say what all shards got."""
    n = len(times)
    event_times = np.array(times, dtype=np.int64)
    readings = Readings(make_ids(f"s{time}" for time in times), event_times, event_times, np.zeros((1, n)))
    seen = {"earliest": min(times, default=NEVER), "latest": max(times, default=NEVER)} | columns
    (frame,) = pack_readings(readings, 1)
    next_offset = first_offset + n
    return row(
        Kind.READINGS, partition=partition, first_offset=first_offset, next_offset=next_offset, frame=frame, **seen
    )


def received(*rows: dict[str, Any]) -> Frames:
    return read_frames(rows_of([pd.DataFrame(rows, columns=FRAME_SCHEMA.names)]))


def test_readings_come_by_partition_and_offset_however_the_rows_come() -> None:
    frames = received(
        readings_row(5, partition=1),
        readings_row(4, 9, partition=0, first_offset=7),
        readings_row(1, partition=0, first_offset=3),
    )

    assert [part.event_times.tolist() for part in frames.readings["f"]] == [[1], [4, 9], [5]]
    assert frames.next_offsets == {"f": {0: 9, 1: 1}}


def test_readings_for_joins_come_by_partition_and_offset_beside_those_of_the_shard() -> None:
    frames = received(
        readings_row(7, partition=1) | {"kind": Kind.JOIN_READINGS},
        readings_row(4, partition=0, first_offset=7),
        readings_row(5, 4, partition=0, first_offset=6) | {"kind": Kind.JOIN_READINGS},
        readings_row(1, partition=0, first_offset=3) | {"kind": Kind.JOIN_READINGS},
    )

    assert [part.event_times.tolist() for part in frames.join_readings["f"]] == [[1], [5, 4], [7]]
    assert [part.event_times.tolist() for part in frames.readings["f"]] == [[4]]
    assert frames.next_offsets == {"f": {0: 8}}


def test_the_digest_is_of_what_was_read_and_not_of_its_blocks() -> None:
    put = row(Kind.COMMANDS, feed="", first_offset=2, frame=pack_commands([Delete(2, "q")]))
    frame = pack_dead_letters(
        "f", pa.nulls(1, pa.binary()), pa.nulls(1, pa.binary()), ["t"], [0], [7], [DATA_LOSS], ["lost"]
    )
    lost = row(Kind.DEAD_LETTERS, first_offset=7, next_offset=9, frame=frame)
    whole = received(readings_row(4, 9, 5), put)
    in_blocks = received(put, readings_row(5, first_offset=2), readings_row(4, 9))
    others = [
        received(readings_row(4, 9, 5)),
        received(readings_row(4, 9), put),
        received(readings_row(4, 9, 5, partition=1), put),
        received(readings_row(4, 9, 5), put, row(Kind.MARKS, next_offset=10)),
        received(readings_row(4, 9, 5), put, lost),
    ]

    assert in_blocks.digest() == whole.digest()
    assert len({frames.digest() for frames in [whole, *others]}) == 1 + len(others)


def test_commands_come_by_offset() -> None:
    rows = [
        row(Kind.COMMANDS, feed="", first_offset=at, frame=pack_commands([Delete(at, f"q{at}")])) for at in (8, 2, 5)
    ]

    assert [command.offset for command in received(*rows).commands] == [2, 5, 8]


def test_the_clock_spans_the_readings_of_all_shards_and_partitions() -> None:
    frames = received(readings_row(5, earliest=2, latest=6), readings_row(partition=1, earliest=4, latest=9))

    assert frames.clocks == {"f": Clock(9, 2)}
    assert len(frames.readings["f"]) == 1


def test_an_arrow_batch_without_a_good_reading_moves_no_clock() -> None:
    assert received(readings_row()).clocks == {"f": Clock()}


def test_a_mark_moves_the_clock_and_is_no_earliest_reading() -> None:
    frames = received(row(Kind.MARKS, latest=70), row(Kind.MARKS, feed="g"), readings_row(5))

    assert frames.clocks == {"f": Clock(70, 5), "g": Clock()}
