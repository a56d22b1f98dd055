"""The library as the service: programs played to a `bmq.Monitor`, and its tables of events as messages."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas
import polars
import pyarrow as pa

import bmq
from tests.oracle import Answer, Feed, Reading
from tests.programs import Arrival, BadRecord, Batch, Mark

Columns = dict[str, Any]
Table = tuple[Any, Callable[[], None]]  # a table, and what its owner does to it after it was read


def feeds_of(feeds: Mapping[str, Feed]) -> list[bmq.Feed]:
    """Return the feeds of programs as the library has them."""
    return [
        bmq.Feed(
            name,
            feed.dimensions,
            event_time_unit="ms",
            attributes=feed.attributes,
            space="lonlat" if feed.lonlat else "plane",
            max_lateness=f"{feed.max_lateness}ms",
            stream_ttl=None if feed.stream_ttl is None else f"{feed.stream_ttl}ms",
            join=feed.join,
        )
        for name, feed in feeds.items()
    ]


def for_tables(program: Iterable[Batch], types: Mapping[str, type]) -> list[Batch]:
    """Return a program without what a table cannot hold.

    A table has one partition and no bad records, and an attribute has one type: a value of another one becomes null.
    """
    return [
        replace(
            batch,
            items=tuple(_for_table(item, types) for item in batch.items if not isinstance(item, BadRecord)),
            restart=None,
        )
        for batch in program
    ]


def _for_table(item: Arrival | Mark, types: Mapping[str, type]) -> Arrival | Mark:
    if isinstance(item, Mark):
        return item
    attributes = tuple((name, _as_type(value, types[name])) for name, value in item.reading.attributes)
    return replace(item, partition=0, reading=replace(item.reading, attributes=attributes))


def _as_type(value: Any, wanted: type) -> Any:
    if wanted is float:
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
    return value if isinstance(value, wanted) else None


def columns_of(readings: Sequence[Reading], feed: Feed) -> Columns:
    """Return the readings of one feed as columns."""
    values = np.array([reading.value for reading in readings], dtype=np.float64)
    columns: Columns = {
        "id": [reading.stream for reading in readings],
        "ts": np.array([reading.event_time for reading in readings], dtype=np.int64),
        **{name: values[:, k].copy() for k, name in enumerate(feed.dimensions)},
    }
    return columns | {name: [reading.attribute(name) for reading in readings] for name in feed.attributes}


def _nothing() -> None:
    pass


def as_dict(columns: Columns) -> Table:
    return columns, _nothing


def as_pandas(columns: Columns) -> Table:
    return pandas.DataFrame(columns), _nothing


def as_polars(columns: Columns) -> Table:
    return polars.DataFrame(columns, strict=False), _nothing


def as_chunks(columns: Columns) -> Table:
    """Return an Arrow table with a chunk for each row, ids as a dictionary and times as timestamps."""
    table = pa.table(columns)
    table = table.set_column(0, "id", table["id"].dictionary_encode())
    table = table.set_column(1, "ts", table["ts"].cast(pa.timestamp("ms", "UTC")).cast(pa.timestamp("ns", "UTC")))
    return pa.concat_tables([table.slice(row, 1) for row in range(table.num_rows)]), _nothing


def as_numpy(columns: Columns) -> Table:
    """Return an Arrow table over numpy's memory, which is overwritten later."""

    def scribble() -> None:
        for column in columns.values():
            if isinstance(column, np.ndarray):
                column.fill(7)

    table = pa.table(columns)
    before = pa.table({name: pa.array(table[name].to_pylist(), table[name].type) for name in table.column_names})

    def check() -> None:
        assert table.equals(before), "the library wrote to its input"
        scribble()

    return table, check


FORMS: list[Callable[[Columns], Table]] = [as_dict, as_pandas, as_polars, as_chunks, as_numpy]


def play(
    monitor: bmq.Monitor, program: Iterable[Batch], feeds: Mapping[str, Feed], form: Callable[[Columns], Table]
) -> list[Answer]:
    """Let a monitor process a program; return its answers, those of expiries with offset -1."""
    answers: list[Answer] = []
    offset = 0
    for batch in program:
        for command in batch.commands:
            answers.append(_answer(monitor, offset, command.query_id, command.value))
            answers += [Answer(-1, query_id, "expired") for query_id in monitor.expired()]
            offset += 1
        tables = {name: form(columns_of(partitions[0], feeds[name])) for name, partitions in batch.arrived.items()}
        clocks: dict[str, int] = {}
        for name, time in batch.marks:
            clocks[name] = max(time, clocks.get(name, time))
        monitor.advance({name: table for name, (table, _) in tables.items()}, clocks=clocks)
        for _, afterwards in tables.values():
            afterwards()
        answers += [Answer(-1, query_id, "expired") for query_id in monitor.expired()]
    return answers


def _answer(monitor: bmq.Monitor, offset: int, query_id: str, value: bytes | None) -> Answer:
    try:
        status = monitor.remove(query_id) if value is None else monitor.put(query_id, value)
    except bmq.ControlError as error:
        return Answer(offset, query_id, "rejected", error.code.value)
    return Answer(offset, query_id, status)


def messages_of(events: pa.Table, feeds: Mapping[str, Feed]) -> list[dict[str, Any]]:
    """Return a table of events as the service's messages."""
    times = [name for name in events.column_names if pa.types.is_timestamp(events.schema.field(name).type)]
    for name in times:
        events = events.set_column(events.column_names.index(name), name, events[name].cast(pa.int64()))
    return [_message(row, feeds) for row in events.to_pylist()]


def _message(row: dict[str, Any], feeds: Mapping[str, Feed]) -> dict[str, Any]:
    names = ("event_id", "kind", "sign", "reason", "query_id", "query_version", "event_time", "feed", "stream_id")
    message = {name: row[name] for name in (*names, "confirmed_time", "pattern", "began") if row[name] is not None}
    message["tags"] = json.loads(row["tags"])
    if row["feed"] is not None:
        message["value"] = _value(row, "value", feeds[row["feed"]])
        if row["previous.event_time"] is not None:
            value = _value(row, "previous.value", feeds[row["feed"]])
            message["previous"] = {"event_time": row["previous.event_time"], "value": value}
        if row["pass"]:
            message["pass"] = True
    for side in ("left", "right"):
        if row.get(f"{side}.feed") is not None:
            value = _value(row, f"{side}.value", feeds[row[f"{side}.feed"]])
            message[side] = {name: row[f"{side}.{name}"] for name in ("feed", "stream_id", "event_time")}
            message[side]["value"] = value
    return message


def _value(row: dict[str, Any], prefix: str, feed: Feed) -> dict[str, float]:
    return {name: row[f"{prefix}.{name}"] for name in feed.dimensions}
