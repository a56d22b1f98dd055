"""The public `Monitor`: standing queries over tables of readings, in one process.

    put, remove ──────────────► LocalShard ─► events, as columns ─► Arrow table
    advance: tables ─► readings ──┘

The rules are those of the service, because the engine is the same; this module checks what comes from outside.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from bmq.errors import ConfigError, ControlCode, ControlError
from bmq.library import compiling as compiling  # says when kernels are compiled
from bmq.library.event_tables import EventTables
from bmq.library.feeds import Feed
from bmq.library.local_shard import Counts as Counts
from bmq.library.local_shard import LocalShard
from bmq.library.reading_tables import BadReadings, TableReader
from bmq.records import Installation
from bmq.wire.event_times import FIRST_EVENT_TIME_MS, LAST_EVENT_TIME_MS

_EPOCH = datetime.fromisoformat("1970-01-01T00:00:00+00:00")


class Monitor:
    """Standing queries over feeds: the engine of the service without Kafka and Spark.

    Parameters
    ----------
    *feeds : Feed
        The feeds that queries may name; at least one.
    bad_readings : {"refuse", "drop"}
        What happens to a row that is not a reading, such as one without an id. "refuse": `advance` raises, and applies
        nothing. "drop": the row is dropped and counted.

    Examples
    --------
    >>> import bmq
    >>> monitor = bmq.Monitor(bmq.Feed("vehicles", ["x", "y"]))
    >>> region = {"box": {"x": [0, 10], "y": [0, 10]}}
    >>> monitor.put("downtown", {"kind": "border", "feed": "vehicles", "region": region})
    'accepted'
    >>> monitor.advance({"vehicles": {
    ...     "id": ["v7", "v7", "v7"], "ts": [1_700_000_000_000, 1_700_000_001_000, 1_700_000_002_000],
    ...     "x": [5.0, 7.0, 11.0], "y": [5.0, 5.0, 5.0]}})
    2
    >>> monitor.events().select(["sign", "query_id", "stream_id", "value.x"]).to_pylist()
    [{'sign': '+', 'query_id': 'downtown', 'stream_id': 'v7', 'value.x': 5.0},
     {'sign': '-', 'query_id': 'downtown', 'stream_id': 'v7', 'value.x': 11.0}]
    """

    def __init__(self, *feeds: Feed, bad_readings: BadReadings = "refuse") -> None:
        records = {feed.name: feed.record for feed in feeds}
        if not feeds or len(records) < len(feeds):
            names = ", ".join(feed.name for feed in feeds) or "none"
            raise ConfigError(f"The feeds are {names}, but a monitor needs at least one, and each by its own name.")
        if bad_readings not in ("refuse", "drop"):
            raise ConfigError(f'bad_readings is {bad_readings!r}, but it is "refuse" or "drop". Choose one.')
        self._feeds = records
        self._shard = LocalShard(Installation(records))
        self._readers = {name: TableReader(feed, bad_readings) for name, feed in records.items()}
        self._tables = EventTables(records)
        self._n_bad = 0

    # -- queries ------------------------------------------------------------------------------------------

    def put(self, query_id: str, definition: Mapping[str, Any] | str | bytes) -> str:
        """Register a query, or replace the one with this id; return "accepted" or "unchanged".

        Parameters
        ----------
        query_id : str
        definition : mapping or JSON text
            As in the control topic of the service (docs/wire-format.md).

        Raises
        ------
        ControlError
            The definition is refused; its ``code`` and message are those of the service's reply. The definition before
            it stays in force.
        """
        if not isinstance(definition, (Mapping, str, bytes)):
            raise ControlError(
                ControlCode.NOT_JSON,
                f"The definition of {query_id!r} is of type {type(definition).__name__}. Pass a dict or JSON as text; "
                "`remove` deletes a query.",
            )
        if isinstance(definition, Mapping):
            try:
                definition = json.dumps(definition)
            except (TypeError, ValueError) as error:
                raise ControlError(
                    ControlCode.NOT_JSON,
                    f"The definition of {query_id!r} cannot be written as JSON: {error}. Use numbers, texts, lists and "
                    "dicts of Python.",
                ) from None
        return self._shard.apply(query_id, definition.encode() if isinstance(definition, str) else definition)

    def remove(self, query_id: str) -> str:
        """Remove a query; its streams leave it at once, with the reason `query_deleted`. Return "deleted".

        Raises
        ------
        ControlError
            No query of this id is registered.
        """
        return self._shard.apply(query_id, None)

    @property
    def query_ids(self) -> list[str]:
        """The ids of the registered queries, sorted."""
        return self._shard.query_ids

    def expired(self) -> list[str]:
        """Return the queries that ended by their `ttl` or `expires_at` since the last call, in order."""
        return self._shard.expired()

    # -- readings -----------------------------------------------------------------------------------------

    def advance(
        self, readings: Mapping[str, Any] | None = None, *, clocks: Mapping[str, int | datetime] | None = None
    ) -> int:
        """Apply one batch of readings; return how many events it has.

        Within a batch, the readings of a feed are put in order of event time, and those of several feeds in a common
        order. From batch to batch, a reading that is older than its stream is late, unless the feed has `max_lateness`.

        Parameters
        ----------
        readings : mapping of feed name to table
            A table is a frame of pandas or Polars, an Arrow table or record batch, a dict of columns, or another object
            with Arrow's stream interface. Feeds that are absent have no readings.
        clocks : mapping of feed name to time, optional
            How far the event time of a feed has come although no reading says so, as epoch milliseconds or as a
            datetime with a time zone. What is due before it happens now: at the end of a history, for instance.

        Raises
        ------
        ReadingError
            A table is not what its feed declares, or has a bad row. The monitor is as before.
        """
        readings, clocks = readings or {}, clocks or {}
        for name in (*readings, *clocks):
            if name not in self._feeds:
                known = ", ".join(self._feeds)
                raise ConfigError(f"There is no feed {name!r} in this monitor. Its feeds: {known}. Use one of these.")
        marks = {name: _milliseconds(name, time) for name, time in clocks.items()}
        read = {name: self._readers[name].read(table) for name, table in readings.items()}
        tables = {name: table for name, (table, _) in read.items() if table is not None}
        n_events = self._shard.advance(tables, marks)
        self._n_bad += sum(n for _, n in read.values())
        return n_events

    # -- events -------------------------------------------------------------------------------------------

    def events(self) -> Any:
        """Return the events since the last call as a ``pyarrow.Table``, in order, and forget them.

        The columns are always the same, so that tables can be concatenated; docs/library.md lists them.
        """
        return self._tables.table(self._shard.events())

    @property
    def counts(self) -> Counts:
        """What was counted since the monitor was made."""
        return replace(self._shard.counts, bad=self._n_bad)

    def __repr__(self) -> str:
        n_queries, n_streams = len(self._shard.query_ids), self._shard.n_streams
        return f"<bmq.Monitor of {', '.join(self._feeds)}: {n_queries} queries, {n_streams} streams>"


def _milliseconds(feed: str, time: int | datetime) -> int:
    """Return a time of ``clocks`` as epoch milliseconds, rounded down."""
    if isinstance(time, datetime):
        if time.tzinfo is None:
            raise ConfigError(
                f"The clock of feed {feed!r} is {time}, which has no time zone. Give it one, such as datetime.UTC."
            )
        return (time - _EPOCH) // timedelta(milliseconds=1)
    if isinstance(time, bool) or not isinstance(time, int) or not FIRST_EVENT_TIME_MS <= time <= LAST_EVENT_TIME_MS:
        raise ConfigError(
            f"The clock of feed {feed!r} is {time!r}, but a time is a datetime, or whole epoch milliseconds of the "
            "years 1 to 9999. Give one of these."
        )
    return time
