"""A feed's options from sample records of its topic, each with the reason: a guess, for a person to check.

Knows JSON objects and the times of their records, but no Kafka.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from bmq.errors import ConfigError, ReadingError
from bmq.records import TimeUnit
from bmq.wire.event_times import read_event_time

Row = dict[str, Any]

LEAST_SHARE = 0.9  # of the samples must be JSON objects; one stray record does not hinder
MOST_DIMENSIONS = 4

# The usual names, the likelier first.
_ID_NAMES = ("id", "symbol", "vehicle", "device", "sensor", "ticker", "mmsi", "imei", "uuid", "key", "name")
_TIME_NAMES = ("ts", "timestamp", "event_time", "time", "datetime", "date", "at", "t")
_LONGITUDES, _LATITUDES = ("lon", "lng", "long", "longitude"), ("lat", "latitude")

_LONGEST_AWAY_MS = 366 * 86_400_000.0  # between an event time and the time of its record


@dataclass(frozen=True, slots=True)
class Sample:
    """A record of a topic.

    Attributes
    ----------
    time_ms : the record's timestamp, epoch ms.
    """

    key: bytes | None
    value: bytes | None
    time_ms: int


@dataclass(frozen=True, slots=True)
class Option:
    """An option of a feed, and why it has this value."""

    name: str
    value: str | list[str]
    reason: str


def guess_feed(topic: str, samples: Sequence[Sample], stream_id: str | None = None) -> list[Option]:
    """Return the options of a feed on this topic, in the order in which a file has them.

    Parameters
    ----------
    stream_id : the field that names the stream, or `@key`; None: it is guessed, too.

    Raises
    ------
    ConfigError : the records are not JSON objects, or a needed field is not found; the message says what to do.
    """
    rows, read = _read(topic, samples)
    fields = _whole_fields(rows)
    options = [Option("topic", topic, f"{len(samples)} records were looked at")]
    named = _stream_id(topic, fields, read, stream_id)
    options.append(named)
    rest = {name: values for name, values in fields.items() if name != named.value}
    time = _event_time(rest, [sample.time_ms for sample in read])
    options += time
    rest = {name: values for name, values in rest.items() if not time or name != time[0].value}
    return options + _dimensions(topic, rest)


def _read(topic: str, samples: Sequence[Sample]) -> tuple[list[Row], list[Sample]]:
    """Return the JSON objects, and the samples that have them."""
    rows, read = [], []
    for sample in samples:
        try:
            row = json.loads(sample.value or b"")
        except ValueError:
            continue
        if isinstance(row, dict):
            rows.append(row)
            read.append(sample)
    if not samples:
        raise ConfigError(f"Topic {topic!r} has no records to guess from. Send some, or leave out --topic.")
    if len(rows) < LEAST_SHARE * len(samples):
        first = (next(sample.value for sample in samples if sample not in read) or b"")[:80]
        raise ConfigError(
            f"{len(samples) - len(rows)} of {len(samples)} records of topic {topic!r} are not JSON objects, such as "
            f"{first!r}. Leave out --topic and answer the questions; for CSV set format as docs/configuration.md says."
        )
    return rows, read


def _whole_fields(rows: list[Row]) -> dict[str, list[Any]]:
    """Return field -> its values, for the fields that each row has, with a scalar."""
    return {
        name: [row[name] for row in rows]
        for name in rows[0]
        if name.isprintable()
        if all(isinstance(row.get(name), str | int | float | bool) for row in rows)
    }


def _stream_id(topic: str, fields: dict[str, list[Any]], samples: list[Sample], chosen: str | None) -> Option:
    if chosen is not None:
        if chosen != "@key" and chosen not in fields:
            raise ConfigError(
                f"Field {chosen!r} is not in every record of topic {topic!r}, or is neither text nor a number. "
                f"These are: {_listed(fields)}."
            )
        return Option("stream_id", chosen, "as you said")
    names = [name for name, values in fields.items() if all(_may_name(value) for value in values)]
    keys = [sample.key for sample in samples]
    for name in names:
        if keys == [str(value).encode() for value in fields[name]]:
            return Option("stream_id", name, "it equals the key of each record")
    for name in sorted(names, key=_id_rank):
        if _id_rank(name) < len(_ID_NAMES) + 1:
            return Option("stream_id", name, "by its name; it is in each record")
    if all(keys):
        return Option("stream_id", "@key", "each record has a key, and no field has the name of an id")
    raise ConfigError(
        f"No field of topic {topic!r} has the name of an id, and not every record has a key. Name the field with "
        f"--stream-id; those in every record are: {_listed(fields)}."
    )


def _may_name(value: Any) -> bool:
    return value != "" and isinstance(value, str | int) and not isinstance(value, bool)


def _id_rank(name: str) -> int:
    """Return how likely a field names the stream: 0 is the likeliest."""
    plain = name.lower()
    if plain in _ID_NAMES:
        return _ID_NAMES.index(plain)
    return len(_ID_NAMES) + (0 if plain.endswith("id") else 1)


def _event_time(fields: dict[str, list[Any]], times_ms: list[int]) -> list[Option]:
    """Return the options of the field whose values are the nearest to the records' own times; none: no field fits."""
    found: list[tuple[bool, float, str, TimeUnit | None]] = []
    for name, values in fields.items():
        is_usual = name.lower() in _TIME_NAMES
        for unit, times in _readings_of(name, values):
            away = median(abs(time - of_record) for time, of_record in zip(times, times_ms, strict=True))
            if away <= _LONGEST_AWAY_MS:
                found.append((not is_usual, away, name, unit))
    if not found:
        return []
    _, away, name, unit = min(found, key=lambda one: one[:3])
    near = f"{away / 1000:,.0f} s from the time of the record, in the median"
    options = [Option("event_time", name, near)]
    if unit is not None and unit is not TimeUnit.MS:
        options.append(Option("event_time_unit", unit, "the numbers are that large"))
    return options


def _readings_of(name: str, values: list[Any]) -> list[tuple[TimeUnit | None, list[float]]]:
    """Return the ways to read values as times, epoch ms: in each unit, or as RFC 3339 (None)."""
    if all(_is_number(value) for value in values):
        return [(unit, [value * 10.0**unit.power for value in values]) for unit in TimeUnit]
    if not all(isinstance(value, str) for value in values):
        return []
    try:
        return [(None, [float(read_event_time(name, value, None)) for value in values])]
    except ReadingError:
        return []


def _dimensions(topic: str, fields: dict[str, list[Any]]) -> list[Option]:
    """Return dimensions, space and attributes from the fields that are left."""
    numbers = [name for name, values in fields.items() if all(_is_number(value) for value in values)]
    degrees = _degrees(fields, numbers)
    if degrees is not None:
        options = [
            Option("dimensions", degrees, "longitude and latitude, by their names and values"),
            Option("space", "lonlat", "they are degrees"),
        ]
    elif numbers:
        chosen = numbers[:MOST_DIMENSIONS]
        options = [Option("dimensions", chosen, "the numbers in each record")]
    else:
        raise ConfigError(
            f"No other field of topic {topic!r} is a number in each record, and regions are about numbers. In each "
            f"record are: {_listed(fields)}."
        )
    others = [name for name in fields if name not in options[0].value]
    if others:
        options.append(Option("attributes", others, "the other fields; drop those that no query will ask for"))
    return options


def _degrees(fields: dict[str, list[Any]], numbers: list[str]) -> list[str] | None:
    longitude = next((name for name in numbers if name.lower() in _LONGITUDES), None)
    latitude = next((name for name in numbers if name.lower() in _LATITUDES), None)
    if longitude is None or latitude is None:
        return None
    ranges = ((longitude, 180), (latitude, 90))
    on_globe = all(abs(value) <= most for name, most in ranges for value in fields[name])
    return [longitude, latitude] if on_globe else None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _listed(fields: dict[str, list[Any]]) -> str:
    return ", ".join(fields) or "none"
