"""A backtest against the service and the definition: the same events for the same input.

The programs are those of `test_service_machine`. All queries are put first, because a backtest has no later commands;
the readings of one feed then follow in batches, as rows of a Parquet file with a piece for each batch.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from bmq.backtest.event_files import EventFile
from bmq.backtest.reading_files import ReadingFiles
from bmq.backtest.replay import Moments, Replay
from bmq.backtest.shard_frames import FRAME_SCHEMA, FrameMaker, ShardReplay, units_of
from bmq.library.local_shard import LocalShard
from bmq.records import Installation
from tests.examples import times
from tests.library import columns_of, for_tables, messages_of
from tests.oracle import Oracle, Reading
from tests.programs import FEEDS, SERVED, Arrival, Batch, Put, as_event, by_stream, differences, lines_of, run, tell
from tests.pure_service import PureService
from tests.strategies import programs

pytestmark = [pytest.mark.property, pytest.mark.timeout(1_200)]

ARROW_TYPES = {str: pa.string(), float: pa.float64(), bool: pa.bool_()}
types = st.fixed_dictionaries({name: st.sampled_from(list(ARROW_TYPES)) for name in ("group", "size")})


@settings(max_examples=times(0.3))
@given(program=programs(), types=types, n_readings=st.integers(1, 4))
def test_a_backtest_gives_the_events_of_the_service_and_of_the_definition(
    program: Sequence[Batch], types: Mapping[str, type], n_readings: int
) -> None:
    program = for_tables(program, types)
    for feed in FEEDS:
        if puts := puts_of(program, feed):
            compare(feed, puts, readings_of(program, feed), types, n_readings)


@settings(max_examples=times(0.2))
@given(program=programs(), types=types)
def test_in_order_of_event_time_the_batches_change_no_event(
    program: Sequence[Batch], types: Mapping[str, type]
) -> None:
    program = for_tables(program, types)
    for feed in FEEDS:
        if puts := puts_of(program, feed):
            readings = sorted(readings_of(program, feed), key=lambda reading: reading.event_time)
            emitted = []
            for n_readings in (1, 3, 1_000_000):
                with TemporaryDirectory() as folder:
                    write_readings(Path(folder, "in.parquet"), feed, readings, types)
                    emitted.append(in_order(messages_of(backtest(Path(folder), feed, puts, n_readings), FEEDS)))
            note("\n".join(map(str, readings)))
            assert emitted[0] == emitted[1] == emitted[2]


@settings(max_examples=times(0.2))
@given(program=programs(), types=types, n_readings=st.integers(1, 4), n_shards=st.integers(1, 3))
def test_shards_give_the_events_of_one_process(
    program: Sequence[Batch], types: Mapping[str, type], n_readings: int, n_shards: int
) -> None:
    program = for_tables(program, types)
    for feed in FEEDS:
        if puts := puts_of(program, feed):
            with TemporaryDirectory() as folder:
                write_readings(Path(folder, "in.parquet"), feed, readings_of(program, feed), types, n_readings)
                whole = backtest(Path(folder), feed, puts, n_readings)
                by_shard = backtest_by_shard(Path(folder), feed, puts, n_shards)
            assert in_order(messages_of(by_shard, FEEDS)) == in_order(messages_of(whole, FEEDS))


def backtest_by_shard(folder: Path, feed: str, puts: Mapping[str, Put], n_shards: int) -> pa.Table:
    """Return the events of all shards, with a unit for each row group; the rows come as Spark may deal them out."""
    definitions = {query_id: put.value for query_id, put in puts.items()}
    maker = FrameMaker(SERVED[feed], "refuse", (), tuple(range(n_shards)))
    replay = ShardReplay(Installation({feed: SERVED[feed]}, "bmq."), definitions, None, str(folder))
    rows = [
        row for unit in units_of([folder / "in.parquet"]) for batch in maker.frames(unit) for row in batch.to_pylist()
    ]
    outcomes = []
    for shard in range(n_shards):
        own = sorted((row for row in rows if row["shard"] == shard), key=lambda row: (row["unit"], row["piece"]))
        outcomes.append(replay.run(shard, pa.Table.from_pylist(own, FRAME_SCHEMA).to_batches()))
    tables = [pq.read_table(folder / f"part-{shard:05}.parquet") for shard in range(n_shards)]
    assert [outcome.counts.events for outcome in outcomes] == [table.num_rows for table in tables]
    return pa.concat_tables(tables)


def compare(
    feed: str, puts: Mapping[str, Put], readings: Sequence[Reading], types: Mapping[str, type], n_readings: int
) -> None:
    """Play the queries and the readings of a feed to all three; all must say the same."""
    parts = [readings[first : first + n_readings] for first in range(0, len(readings), n_readings)]
    played = [
        Batch(tuple(puts.values()), ()),
        *(Batch((), tuple(Arrival(feed, 0, reading) for reading in part)) for part in parts),
    ]
    note(lines_of(played))
    oracle, service = Oracle(FEEDS), PureService(SERVED, 2)
    tell(oracle, played)
    run(service, played)

    with TemporaryDirectory() as folder:
        write_readings(Path(folder, "in.parquet"), feed, readings, types)
        events = backtest(Path(folder), feed, puts, n_readings)

    messages = messages_of(events, FEEDS)
    assert in_order(messages) == in_order(service.events)
    assert not differences(by_stream([as_event(message) for message in messages]), by_stream(oracle.events))


def write_readings(
    file: Path, feed: str, readings: Sequence[Reading], types: Mapping[str, type], group_rows: int | None = None
) -> None:
    served = SERVED[feed]
    numbers = [(name, pa.float64()) for name in served.dimensions]
    attributes = [(name, ARROW_TYPES[types[name]]) for name in served.attributes]
    schema = pa.schema([("id", pa.string()), ("ts", pa.int64()), *numbers, *attributes])
    columns = columns_of(readings, FEEDS[feed]) if readings else {name: [] for name in schema.names}
    pq.write_table(pa.table(columns, schema), file, row_group_size=group_rows)


def backtest(folder: Path, feed: str, puts: Mapping[str, Put], n_readings: int) -> pa.Table:
    """Return the events of a backtest from file to file, with batches of so many readings."""
    served = SERVED[feed]
    feeds = {feed: served}
    sink = EventFile(folder / "out.parquet", feeds, overwrite=False)
    shard = LocalShard(Installation(feeds, "bmq."))
    source = ReadingFiles([folder / "in.parquet"], served, batch_rows=n_readings)
    definitions = {query_id: put.value for query_id, put in puts.items()}
    Replay(shard, feed, definitions, Moments(), [sink]).run(source.pieces(), lambda done: None)
    sink.finish()
    return pq.read_table(folder / "out.parquet")


def readings_of(program: Sequence[Batch], feed: str) -> list[Reading]:
    """Return the readings of a feed, in the order of the program."""
    items = [item for batch in program for item in batch.items if isinstance(item, Arrival)]
    return [item.reading for item in items if item.feed == feed]


def puts_of(program: Sequence[Batch], feed: str) -> dict[str, Put]:
    """Return the last definition of each query over the feed."""
    found = [command for batch in program for command in batch.commands if isinstance(command, Put)]
    return {put.query_id: put for put in found if json.loads(put.value).get("feed") == feed}


def in_order(messages: Sequence[dict[str, object]]) -> list[dict[str, object]]:
    """Return messages by event id: the order of streams among each other is free."""
    return sorted(messages, key=lambda message: str(message["event_id"]))
