"""What `bmq init` makes of records: the options of a feed, each with its reason."""

import json
from pathlib import Path
from typing import Any

import pytest

from bmq.config import load_config
from bmq.config.feed_guess import Sample, guess_feed
from bmq.config.first_file import feed_name, first_file
from bmq.errors import ConfigError

NOW_MS = 1_764_500_000_000


def samples(*rows: dict[str, Any], key: str | None = None) -> list[Sample]:
    """Return records with these values; ``key`` names the field that is the key, too."""
    return [
        Sample(None if key is None else str(row[key]).encode(), json.dumps(row).encode(), NOW_MS + number)
        for number, row in enumerate(rows)
    ]


def guessed(found: list[Sample], stream_id: str | None = None) -> dict[str, Any]:
    return {option.name: option.value for option in guess_feed("positions", found, stream_id)}


def test_vehicles_are_on_the_globe_with_a_time_in_seconds() -> None:
    rows = [
        {"name": "x", "vehicle": f"v{n}", "at": NOW_MS / 1000 + n, "latitude": 48.1, "longitude": 11.5, "speed": n}
        for n in range(3)
    ]
    assert guessed(samples(*rows)) == {
        "topic": "positions",
        "stream_id": "vehicle",
        "event_time": "at",
        "event_time_unit": "s",
        "dimensions": ["longitude", "latitude"],
        "space": "lonlat",
        "attributes": ["name", "speed"],
    }


def test_prices_have_one_dimension_and_a_time_as_text() -> None:
    rows = [{"symbol": "A", "ts": "2025-11-30T10:53:20Z", "price": 41.5, "sector": "tech", "open": True}]
    assert guessed(samples(*rows)) == {
        "topic": "positions",
        "stream_id": "symbol",
        "event_time": "ts",
        "dimensions": ["price"],
        "attributes": ["sector", "open"],
    }


def test_a_text_that_the_service_does_not_read_as_a_time_is_no_event_time() -> None:
    assert guessed(samples({"id": "a", "x": 1, "ts": "20251130T105320Z"}))["attributes"] == ["ts"]


def test_the_field_that_equals_the_key_names_the_stream_whatever_its_name_is() -> None:
    rows = [{"id": n, "fleet_number": f"f{n}", "x": 1.0} for n in range(3)]
    assert guessed(samples(*rows, key="fleet_number"))["stream_id"] == "fleet_number"
    assert guessed(samples(*rows))["stream_id"] == "id"


def test_without_an_id_among_the_fields_the_key_names_the_stream() -> None:
    found = [Sample(b"k", b'{"x": 1, "label": "a"}', NOW_MS)]
    assert guessed(found)["stream_id"] == "@key"
    assert guessed(found, "label")["stream_id"] == "label"
    with pytest.raises(ConfigError, match=r"--stream-id; those in every record are: x, label"):
        guessed([Sample(None, b'{"x": 1, "label": "a"}', NOW_MS)])
    with pytest.raises(ConfigError, match="Field 'z' is not in every record"):
        guessed(found, "z")


def test_a_number_that_is_no_time_is_a_dimension_and_degrees_off_the_globe_are_plain_numbers() -> None:
    found = guessed(samples({"id": "a", "ts": 17.0, "lon": 500.0, "lat": 10.0}))
    assert "event_time" not in found
    assert found["dimensions"] == ["ts", "lon", "lat"]


@pytest.mark.parametrize("factor", [1e-3, 1, 1e3, 1e6])
def test_the_unit_of_a_time_is_found(factor: float) -> None:
    found = guessed(samples({"id": "a", "x": 1, "when": int((NOW_MS - 5_000) * factor)}))
    unit = {1e-3: "s", 1: "ms", 1e3: "us", 1e6: "ns"}[factor]
    assert (found["event_time"], found.get("event_time_unit", "ms")) == ("when", unit)


def test_fields_that_some_records_lack_or_that_are_no_scalars_have_no_role() -> None:
    rows: list[dict[str, Any]] = [{"id": "a", "x": 1, "y": 2, "tags": [1]}, {"id": "b", "x": None, "y": 3, "tags": [2]}]
    assert guessed(samples(*rows)) == {"topic": "positions", "stream_id": "id", "dimensions": ["y"]}


def test_what_cannot_be_guessed_is_said_with_the_way_out() -> None:
    with pytest.raises(ConfigError, match="has no records to guess from"):
        guess_feed("positions", [])
    with pytest.raises(ConfigError, match=r"2 of 3 records of topic 'positions' are not JSON objects, such as b'a,1'"):
        guess_feed("positions", [Sample(None, b"a,1", 0), Sample(None, b"[1]", 0), *samples({"id": "a", "x": 1})])
    with pytest.raises(ConfigError, match="No other field of topic 'positions' is a number"):
        guess_feed("positions", samples({"id": 17, "name": "n"}))


@pytest.mark.parametrize("servers", [None, "kafka:9092"])
def test_the_file_is_a_configuration_with_these_options(tmp_path: Path, servers: str | None) -> None:
    rows = [{'i "d"': "ä", "ts": NOW_MS, "lng": 11.5, "lat": 48.1, "größe \\": 3, "\ud800": 4}]
    options = guess_feed("Fleet.Positions_1", samples(*rows, key='i "d"'))
    path = tmp_path / "bmq.toml"
    path.write_text(first_file(options, servers), encoding="utf-8")

    config = load_config(path)
    feed = config.feeds["fleet-positions-1"]
    assert config.kafka.bootstrap_servers == servers
    assert (feed.topic, feed.stream_id, feed.event_time) == ("Fleet.Positions_1", 'i "d"', "ts")
    assert (feed.dimensions, feed.space, feed.attributes) == (("lng", "lat"), "lonlat", ("größe \\",))


def test_every_topic_gives_a_name_for_its_feed() -> None:
    assert [feed_name(topic) for topic in ("stocks", "a.b__c", "_x_", "...")] == ["stocks", "a-b-c", "x", "readings"]
