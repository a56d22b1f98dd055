"""What a checkpoint refuses to be started with."""

import dataclasses
from typing import Any

import pytest

from bmq.errors import ConfigError
from bmq.job.checkpoint import Origin, bound_options, must_fit
from bmq.records import Feed, Format, IndexKind, TimeUnit

FEED = Feed("plane", "plane", "id", ("x", "y"), event_time="ts", attributes=("group", "kind"), max_lateness_ms=5_000)
ORIGIN = Origin(shards=4, start_offsets={"plane": {0: 0}}, control_end=0, feeds=bound_options({"plane": FEED}))


def test_the_configuration_it_was_made_with_fits_and_so_does_one_with_a_further_feed() -> None:
    must_fit(ORIGIN, "var/c", 4, {"plane": FEED})
    must_fit(ORIGIN, "var/c", 4, {"plane": FEED, "line": Feed("line", "line", "id", ("x",))})


def test_another_index_fits_as_no_state_is_about_it() -> None:
    for kind in IndexKind:
        must_fit(ORIGIN, "var/c", 4, {"plane": dataclasses.replace(FEED, index=kind)})


def test_another_number_of_shards_is_refused_with_the_one_it_was_made_with() -> None:
    with pytest.raises(ConfigError, match=r"job.shards is 2.*'var/c' was made with 4.*Set job.shards = 4"):
        must_fit(ORIGIN, "var/c", 2, {"plane": FEED})


def test_a_feed_that_is_gone_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match=r"state of feed 'plane'.*Put \[feeds.plane\] back"):
        must_fit(ORIGIN, "var/c", 4, {"line": Feed("line", "line", "id", ("x",))})


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"dimensions": ("y", "x")}, r"feeds.plane.dimensions is \['y', 'x'\].*made with \['x', 'y'\]"),
        ({"attributes": ("kind", "group")}, r"attributes is \['kind', 'group'\].*made with \['group', 'kind'\]"),
        ({"topic": "elsewhere"}, r"feeds.plane.topic is 'elsewhere'.*made with 'plane'"),
        ({"lonlat": True}, r"feeds.plane.space is 'lonlat'.*made with 'plane'"),
        ({"format": Format.CSV}, r"feeds.plane.format is 'csv'.*made with 'json'"),
        ({"stream_id": "@key"}, r"feeds.plane.stream_id is '@key'.*made with 'id'"),
        ({"event_time": None}, r"feeds.plane.event_time is None.*made with 'ts'"),
        ({"join": True}, r"feeds.plane.join is True.*made with False"),
        ({"max_lateness_ms": 0}, r"feeds.plane.max_lateness is '0ms'.*made with '5000ms'"),
    ],
)
def test_an_option_that_the_state_is_about_must_stay(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        must_fit(ORIGIN, "var/c", 4, {"plane": dataclasses.replace(FEED, **changed)})


@pytest.mark.parametrize(
    "changed",
    [
        {"stream_ttl_ms": 60_000},
        {"idle_advance_ms": 60_000},
        {"max_future_ms": 60_000},
        {"event_time_unit": TimeUnit.S},
    ],
)
def test_what_only_says_what_comes_next_may_change(changed: dict[str, Any]) -> None:
    must_fit(ORIGIN, "var/c", 4, {"plane": dataclasses.replace(FEED, **changed)})
