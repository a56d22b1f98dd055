"""Frames of shards: every shard has the clock of the whole feed, whatever readings it has."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bmq.backtest.shard_frames import FRAME_SCHEMA, FrameMaker, ShardReplay, Unit, units_of
from bmq.errors import ServiceError
from bmq.records import Feed, Installation

FIRST = 1_700_000_000_000
N_SHARDS = 3
LINE = Feed("line", "line", "id", ("x",), "ts")
QUERY = {"kind": "border", "feed": "line", "region": {"box": {"x": [0, 10]}}}


@pytest.fixture(autouse=True)
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(file: str, rows: list[tuple[str, int, float]], group_rows: int) -> None:
    ids, seconds, values = (list(column) for column in zip(*rows, strict=True))
    times = [FIRST + 1000 * second for second in seconds]
    pq.write_table(pa.table({"id": ids, "ts": times, "x": values}), file, row_group_size=group_rows)


def replay(**options: Any) -> list[dict[str, Any]]:
    """Return the events of all shards over the files in this folder; the query has these options."""
    maker = FrameMaker(LINE, "refuse", (), tuple(range(N_SHARDS)))
    definitions = {"q": json.dumps(QUERY | options).encode()}
    Path("out").mkdir()
    shards = ShardReplay(Installation({"line": LINE}), definitions, None, "out")
    batches = [batch for unit in units_of([Path()]) for batch in maker.frames(unit)]
    rows = [row for batch in batches for row in batch.to_pylist()]
    for shard in range(N_SHARDS):
        own = [row for row in rows if row["shard"] == shard]
        shards.run(shard, pa.Table.from_pylist(own, FRAME_SCHEMA).to_batches())
    return sorted(pq.read_table("out").to_pylist(), key=lambda row: (row["event_time"], row["stream_id"]))


def test_a_stay_is_confirmed_by_the_readings_of_another_shard() -> None:
    write("in.parquet", [*((f"s{n}", 0, 5.0) for n in range(20)), ("late", 60, 50.0)], 7)

    events = replay(stay_for="10s")

    assert [event["stream_id"] for event in events] == sorted(f"s{n}" for n in range(20))


def test_a_ttl_counts_from_the_first_reading_of_all_shards() -> None:
    # Each stream but the first begins 5 s later; 10 s after the very first reading the query ends for all of them.
    write("in.parquet", [("first", 0, 50.0), *((f"s{n}", 5, 5.0) for n in range(20)), ("late", 60, 50.0)], 100)

    events = replay(ttl="10s")

    ends = [event for event in events if event["reason"] == "query_expired"]
    assert len(ends) == 20
    assert {event["event_time"].timestamp() * 1000 for event in ends} == {FIRST + 10_000}


def test_a_unit_is_a_row_group_or_a_csv_file() -> None:
    write("b.parquet", [("a", n, 5.0) for n in range(5)], 2)
    Path("a.csv").write_text("id,ts,x\n")

    found = units_of([Path()])

    files = [(str(Path("a.csv").resolve()), None), *((str(Path("b.parquet").resolve()), n) for n in range(3))]
    assert found == [Unit(number, file, group) for number, (file, group) in enumerate(files)]
    Path("c.parquet").write_bytes(b"PAR1")
    with pytest.raises(ServiceError, match=r"c\.parquet' cannot be read"):
        units_of([Path()])
