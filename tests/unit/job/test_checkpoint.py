"""What a checkpoint refuses to be started with."""

import dataclasses
from typing import Any

import msgspec
import pytest

from bmq.errors import ConfigError, StateError
from bmq.job.checkpoint import FORMAT, Origin, bound_options, must_be_new, must_fit, read_origin
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


def test_what_was_written_is_read_and_the_format_before_it_too() -> None:
    written = msgspec.json.encode(ORIGIN)
    before = written.replace(f'"format":{FORMAT}'.encode(), f'"format":{FORMAT - 1}'.encode())

    assert read_origin(written, "var/c") == ORIGIN
    assert before != written
    assert read_origin(before, "var/c") == ORIGIN


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b"4",
        b'"x"',
        b"\xff\xfe",
        b"{}",
        b'{"format": null}',
        b'{"format": 4}',
        b'{"format": 4.5}',
    ],
)
def test_a_damaged_file_is_refused_with_the_way_out(text: bytes) -> None:
    with pytest.raises(StateError, match=r"bmq.json in checkpoint var/c is damaged .*Restore it from a copy, or set"):
        read_origin(text, "var/c")


@pytest.mark.parametrize("found", [0, FORMAT - 2, FORMAT + 1, -1])
def test_another_format_is_refused_by_number(found: int) -> None:
    with pytest.raises(StateError, match=rf"has format {found}, and this version reads {FORMAT}"):
        read_origin(f'{{"format": {found}}}'.encode(), "var/c")


def test_sparks_files_alone_are_no_new_checkpoint() -> None:
    must_be_new([], "var/c")
    with pytest.raises(StateError, match=r"has no bmq.json, but Spark's files are there \(commits, offsets\)"):
        must_be_new(["commits", "offsets"], "var/c")
