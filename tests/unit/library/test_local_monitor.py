"""The monitor's own rules: what it accepts, refuses and forgets. `test_library_vs_oracle` has the events."""

import datetime
import json
from typing import Any

import pytest

import bmq

FIRST = 1_700_000_000_000
REGION = {"box": {"x": [0, 10]}}
QUERY = {"kind": "border", "feed": "line", "region": REGION}


def monitor() -> bmq.Monitor:
    return bmq.Monitor(bmq.Feed("line", ["x"]))


def at(second: int, x: float, stream: str = "a") -> dict[str, Any]:
    return {"line": {"id": [stream], "ts": [FIRST + 1000 * second], "x": [x]}}


@pytest.mark.parametrize("written", [QUERY, json.dumps(QUERY), json.dumps(QUERY).encode()])
def test_a_definition_is_a_dict_or_json(written: Any) -> None:
    line = monitor()

    assert line.put("q", written) == "accepted"
    assert line.put("q", QUERY) == "unchanged"
    assert line.query_ids == ["q"]
    assert line.remove("q") == "deleted"
    assert line.query_ids == []


@pytest.mark.parametrize(
    ("definition", "code"),
    [
        (QUERY | {"feed": "lines"}, "unknown_feed"),
        (QUERY | {"kind": "boarder"}, "unknown_kind"),
        (QUERY | {"region": {"box": {"y": [0, 1]}}}, "unknown_dimension"),
        (QUERY | {"region": {"box": {"x": [1, 0]}}}, "bad_region"),
        ("{", "not_json"),
        (QUERY | {"tags": {"when": datetime.date(2026, 5, 9)}}, "not_json"),
    ],
)
def test_a_refused_definition_raises_the_code_of_the_service_and_changes_nothing(definition: Any, code: str) -> None:
    line = monitor()
    line.put("q", QUERY)

    with pytest.raises(bmq.ControlError) as error:
        line.put("q", definition)

    assert error.value.code == code
    assert line.put("q", QUERY) == "unchanged"


def test_an_unknown_query_cannot_be_removed() -> None:
    with pytest.raises(bmq.ControlError, match="query 'q' is not registered"):
        monitor().remove("q")


def test_a_table_that_is_refused_leaves_the_monitor_as_before() -> None:
    both = bmq.Monitor(bmq.Feed("line", ["x"]), bmq.Feed("other", ["x"]))
    both.put("q", QUERY)

    with pytest.raises(bmq.ReadingError, match="Feed 'other', row 0"):
        both.advance(at(1, 5.0) | {"other": {"id": [None], "ts": [FIRST], "x": [1.0]}})

    assert both.counts == bmq.Counts()
    assert both.advance(at(0, 5.0)) == 1


def test_an_unknown_feed_is_refused() -> None:
    with pytest.raises(bmq.ConfigError, match=r"no feed 'lime' in this monitor\. Its feeds: line"):
        monitor().advance({"lime": {}})


@pytest.mark.parametrize(
    ("time", "message"),
    [
        (datetime.datetime(2026, 5, 9), "has no time zone"),
        (1.5, "whole epoch milliseconds"),
        (True, "whole epoch milliseconds"),
        (2**62, "of the years 1 to 9999"),
    ],
)
def test_a_clock_that_is_no_time_is_refused(time: Any, message: str) -> None:
    with pytest.raises(bmq.ConfigError, match=message):
        monitor().advance(clocks={"line": time})


def test_a_clock_ends_a_query_whose_life_is_over() -> None:
    line = monitor()
    line.put("q", QUERY | {"ttl": "10s"})
    line.advance(at(0, 5.0))

    assert line.advance(clocks={"line": datetime.datetime.fromtimestamp(FIRST / 1000 + 11, datetime.UTC)}) == 1

    assert line.expired() == ["q"]
    assert line.expired() == []
    assert line.query_ids == []
    assert line.events()["reason"].to_pylist() == ["first_seen", "query_expired"]


def test_every_table_of_events_has_the_same_columns() -> None:
    line = bmq.Monitor(bmq.Feed("line", ["x"]), bmq.Feed("plane", ["x", "y"], join=True))
    empty = line.events()
    line.put("q", QUERY)
    line.advance(at(0, 5.0))

    assert line.events().schema == empty.schema
    assert [name for name in empty.column_names if name.startswith("value.")] == ["value.x", "value.y"]


def test_an_output_topic_is_a_column() -> None:
    line = monitor()
    line.put("q", QUERY | {"output_topic": "alerts", "tags": {"shop": "17"}})
    line.advance(at(0, 5.0))

    (event,) = line.events().to_pylist()
    assert (event["output_topic"], event["tags"]) == ("alerts", '{"shop":"17"}')


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"topic": "positions"}, "'topic' is an option of the service, .* pass it to Monitor.advance"),
        ({"format": "json"}, "'format' is an option of the service"),
        ({"idle_advance": "1m"}, "'idle_advance' is an option of the service, .* pass `clocks`"),
        ({"max_future": "1h"}, "'max_future' is an option of the service"),
        ({"stream_idd": "id"}, 'stream_idd: there is no such option; did you mean "stream_id"'),
        ({"stream_id": "@key"}, "neither a timestamp nor a key of its own. Name a column for each"),
        ({"event_time": None}, "neither a timestamp nor a key of its own"),
        ({"attributes": ["x"]}, "x stands more than once among"),
        ({"space": "lonlat"}, "two dimensions, longitude and latitude, and not for 1"),
        ({"index": "border_grid"}, 'index = "border_grid" is not for 1 dimension'),
        ({"max_lateness": "soon"}, 'max_lateness = "soon": a duration is a whole number with'),
    ],
)
def test_an_option_that_is_not_possible_is_refused_by_its_name(options: dict[str, Any], message: str) -> None:
    with pytest.raises(bmq.ConfigError, match=f"Feed 'line': .*{message}"):
        bmq.Feed("line", ["x"], **options)


def test_a_monitor_needs_feeds_of_different_names() -> None:
    with pytest.raises(bmq.ConfigError, match="The feeds are none, but"):
        bmq.Monitor()
    with pytest.raises(bmq.ConfigError, match="The feeds are a, a, but"):
        bmq.Monitor(bmq.Feed("a", ["x"]), bmq.Feed("a", ["y"]))
    with pytest.raises(bmq.ConfigError, match="bad_readings is 'skip', but"):
        bmq.Monitor(bmq.Feed("a", ["x"]), bad_readings="skip")  # type: ignore[arg-type]


def test_a_long_run_keeps_no_changes_for_a_replica(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bmq.library.local_shard.STEPS_BETWEEN_DELTAS", 3)
    line = monitor()
    for number in range(3):
        line.put(f"q{number}", QUERY)

    assert line._shard._shard.take_delta().commands == ()
    assert repr(line) == "<bmq.Monitor of line: 3 queries, 0 streams>"


def test_a_query_is_not_deleted_by_none() -> None:
    monitor = bmq.Monitor(bmq.Feed("line", ["x"]))
    monitor.put("q", {"kind": "match", "feed": "line", "region": {"box": {"x": [0, 9]}}})

    with pytest.raises(bmq.ControlError, match=r"'q' is of type NoneType\. .*`remove` deletes a query"):
        monitor.put("q", None)  # type: ignore[arg-type]
    assert monitor.query_ids == ["q"]
