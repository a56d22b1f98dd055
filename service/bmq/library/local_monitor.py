"""The public `Monitor`: standing queries over tables of readings, in one process.

    put, remove ─► command ─► monitor.Monitor ─┐
    advance ─► readings ─────► (one shard) ────┴─► events, as columns ─► Arrow table

The rules are those of the service, because the monitor is the same; this module only makes its batches.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from bmq.engines.stage_result import StageResult
from bmq.errors import ConfigError, ControlCode, ControlError
from bmq.library import compiling as compiling  # says when kernels are compiled
from bmq.library.event_tables import EventTables
from bmq.library.feeds import Feed
from bmq.library.reading_tables import BadReadings, TableReader
from bmq.monitor.monitor import Monitor as Shard
from bmq.records import NEVER, Clock, Command, Crossings, Delete, Installation, JoinedPairs, Readings, Status
from bmq.wire.control import parse_command
from bmq.wire.event_times import FIRST_EVENT_TIME_MS, LAST_EVENT_TIME_MS

# The monitor notes what changed for a replica, which the library does not have. More often costs time for each stream
# that moved; seldom, and a notebook that puts a million queries keeps each definition twice.
STEPS_BETWEEN_DELTAS = 1_000

_EPOCH = datetime.fromisoformat("1970-01-01T00:00:00+00:00")


@dataclass(frozen=True, slots=True)
class Counts:
    """What a `Monitor` has counted since it was made.

    Attributes
    ----------
    readings : rows that were readings.
    bad : rows that were not, with ``bad_readings="drop"``.
    late : readings that changed nothing, because their stream was further.
    suppressed : events that an option of their query suppressed.
    events : events so far.
    """

    readings: int = 0
    bad: int = 0
    late: int = 0
    suppressed: int = 0
    events: int = 0


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
        self._installation = Installation(records)
        self._shard = Shard(self._installation)
        self._readers = {name: TableReader(feed, bad_readings) for name, feed in records.items()}
        self._tables = EventTables(records)
        self._events: list[Crossings | JoinedPairs] = []
        self._query_ids: set[str] = set()
        self._expired: list[str] = []
        self._counts = Counts()
        self._next_offset = self._n_steps = 0

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
        return self._apply(query_id, definition.encode() if isinstance(definition, str) else definition)

    def remove(self, query_id: str) -> str:
        """Remove a query; its streams leave it at once, with the reason `query_deleted`. Return "deleted".

        Raises
        ------
        ControlError
            No query of this id is registered.
        """
        return self._apply(query_id, None)

    @property
    def query_ids(self) -> list[str]:
        """The ids of the registered queries, sorted."""
        return sorted(self._query_ids)

    def expired(self) -> list[str]:
        """Return the queries that ended by their `ttl` or `expires_at` since the last call, in order."""
        expired, self._expired = self._expired, []
        return expired

    def _apply(self, query_id: str, definition: bytes | None) -> str:
        offset, self._next_offset = self._next_offset, self._next_offset + 1
        command: Command = parse_command(
            query_id.encode(errors="surrogatepass"), definition, offset, self._installation
        )
        result = self._shard.apply([command])
        answer, *others = result.replies
        if answer.status is Status.REJECTED:
            assert answer.code is not None
            raise ControlError(ControlCode(answer.code), answer.message or "")
        result.replies = others
        if isinstance(command, Delete):
            self._query_ids.discard(query_id)
        else:
            self._query_ids.add(query_id)
        self._note(result)
        self._step()
        return answer.status.value

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
        n_events = self._counts.events
        for name in self._feeds:
            clock = _clock_of(tables.get(name), marks.get(name, NEVER))
            self._note(self._shard.advance(name, tables.get(name), clock))
        if any(feed.join for feed in self._feeds.values()):
            joining = {name: table for name, table in tables.items() if self._feeds[name].join}
            self._note(self._shard.join(joining))
        n_readings, n_bad = sum(map(len, tables.values())), sum(n for _, n in read.values())
        counts = self._counts
        self._counts = replace(counts, readings=counts.readings + n_readings, bad=counts.bad + n_bad)
        self._step()
        return self._counts.events - n_events

    # -- events -------------------------------------------------------------------------------------------

    def events(self) -> Any:
        """Return the events since the last call as a ``pyarrow.Table``, in order, and forget them.

        The columns are always the same, so that tables can be concatenated; docs/library.md lists them.
        """
        table = self._tables.table(self._events)
        self._events = []
        return table

    @property
    def counts(self) -> Counts:
        """What was counted since the monitor was made."""
        return self._counts

    def _note(self, result: StageResult) -> None:
        """Keep what one step of a batch gave."""
        self._events += [*result.crossings, *result.pairs]
        expired = [reply.query_id for reply in result.replies if reply.status is Status.EXPIRED]
        self._expired += expired
        self._query_ids.difference_update(expired)
        counts = self._counts
        self._counts = replace(
            counts,
            late=counts.late + result.n_late,
            suppressed=counts.suppressed + result.n_suppressed,
            events=counts.events + sum(map(len, result.crossings)) + sum(map(len, result.pairs)),
        )

    def _step(self) -> None:
        self._n_steps += 1
        if self._n_steps % STEPS_BETWEEN_DELTAS == 0:
            self._shard.take_delta()

    def __repr__(self) -> str:
        n_streams = sum(self._shard.n_streams().values())
        return f"<bmq.Monitor of {', '.join(self._feeds)}: {len(self._query_ids)} queries, {n_streams} streams>"


def _clock_of(readings: Readings | None, mark: int) -> Clock:
    """Return the earliest and latest event time of a batch; a mark counts for the latest only."""
    if readings is None:
        return Clock(mark)
    return Clock(max(int(readings.event_times.max()), mark), int(readings.event_times.min()))


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
