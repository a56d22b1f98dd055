"""The adapter of this project's own engine: `bmq.Monitor`, in this process."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from bmq.conformance.event_text import Lack
from bmq.conformance.scenario import ATTRIBUTE, BASE_MS, Commands, Json, Publish, Restart, Scenario
from bmq.errors import ConfigError, ControlError
from bmq.library.feeds import Feed
from bmq.library.local_monitor import Monitor
from bmq.wire.outgoing import text_column
from bmq.wire.readings import Decoder

RECORD_TIME = BASE_MS + 100_000_000_000  # years after the seconds of scenarios, as if the records came today
MAX_FUTURE_MS = 3_600_000  # the default of the service; a `Feed` has no such option, because a row has no timestamp
_TIMES = ("event_time", "confirmed_time", "began")
_FIELDS = ("event_id", "kind", "query_id", "stream_id", "sign", "reason", "pattern", *_TIMES)


class LocalAdapter:
    """`bmq.Monitor`. The records are decoded as the service does it, and reach the monitor as tables."""

    lacks: frozenset[Lack] = frozenset()

    def __init__(self, server: str | None) -> None:
        if server is not None:
            raise ConfigError(
                f"--server is {server!r}, but the adapter bmq runs in this process. Leave the option out."
            )
        self._monitor: Monitor | None = None
        self._feeds: dict[str, Feed] = {}
        self._decoders: dict[str, Decoder] = {}

    def cannot(self, scenario: Scenario) -> str | None:
        """Return a reason for restarts, for topics, and for a batch whose attributes have several types."""
        for step in scenario.steps:
            if isinstance(step, Restart):
                return "a bmq.Monitor lives in its process and has no checkpoint to start from"
            if isinstance(step, Commands) and any(b'"output_topic"' in (value or b"") for _, value in step.records):
                return "a bmq.Monitor has no topics"
            if isinstance(step, Publish) and not _is_column([_attribute(value) for value in step.values]):
                return "a column of a table has values of one type, and the attributes of a batch have several"
        return None

    def start(self, feeds: Mapping[str, Json]) -> None:
        """Make a monitor of the feeds."""
        made = {name: Feed(name, **options, attributes=[ATTRIBUTE]) for name, options in feeds.items()}
        self._decoders = {
            name: Decoder(replace(feed.record, max_future_ms=MAX_FUTURE_MS)) for name, feed in made.items()
        }
        self._feeds = made
        self._monitor = Monitor(*made.values())

    def put(self, query_id: str, definition: bytes) -> str:
        """Put a query."""
        assert self._monitor is not None
        try:
            return self._monitor.put(query_id, definition)
        except ControlError as error:
            return f"rejected:{error.code}"

    def delete(self, query_id: str) -> str:
        """Remove a query."""
        assert self._monitor is not None
        try:
            return self._monitor.remove(query_id)
        except ControlError as error:
            return f"rejected:{error.code}"

    def send(self, feed: str, values: Sequence[bytes]) -> list[str]:
        """Apply the readings among the records as one table; return the codes of the others."""
        assert self._monitor is not None
        times = np.full(len(values), RECORD_TIME, dtype=np.int64)
        decoded = self._decoders[feed].decode(None, pa.array(values, pa.binary()), times)
        readings = decoded.readings
        columns: dict[str, Any] = {
            "id": text_column(readings.ids.starts, readings.ids.bytes),
            # As timestamps: the monitor refuses a number that is probably of another unit.
            "ts": pa.array(readings.event_times, pa.timestamp("ms", "UTC")),
            ATTRIBUTE: [_attribute(values[row]) for row in decoded.rows.tolist()],
        }
        columns |= dict(zip(self._feeds[feed].dimensions, readings.values, strict=True))
        if decoded.rows.size:
            self._monitor.advance({feed: pa.table(columns)})
        return [str(bad.code) for bad in decoded.bad]

    def events(self) -> list[Json]:
        """Return the monitor's events as messages."""
        assert self._monitor is not None
        return list(_messages(self._monitor.events()))

    def restart(self, how: str) -> None:
        """Not reached: the adapter cannot express restarts."""
        raise AssertionError(f"a scenario with a restart ({how}) was played")

    def stop(self) -> None:
        """Forget the monitor."""
        self._monitor = None


def _attribute(value: bytes) -> Any:
    try:
        return json.loads(value.decode().removeprefix("\ufeff")).get(ATTRIBUTE)
    except (ValueError, AttributeError):
        return None  # no JSON object: a bad record


def _is_column(attributes: Sequence[Any]) -> bool:
    types = {float if type(value) is int else type(value) for value in attributes if value is not None}
    return len(types) <= 1 and types <= {str, float, bool}


def _messages(events: pa.Table) -> Iterator[Json]:
    for name in _TIMES:
        place = events.column_names.index(name)
        events = events.set_column(place, name, events[name].cast(pa.int64()))
    for row in events.to_pylist():
        message = {name: row[name] for name in _FIELDS if row[name] is not None}
        if row["pass"]:
            message["pass"] = True
        sides = [side for side in ("left", "right") if row.get(f"{side}.stream_id") is not None]
        yield message | {side: {"stream_id": row[f"{side}.stream_id"]} for side in sides}
