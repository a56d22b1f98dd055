"""What a checkpoint refuses to be started with."""

import dataclasses

import msgspec
import pytest

from bmq.errors import ConfigError
from bmq.job.checkpoint import Origin, must_fit
from bmq.records import Feed, IndexKind

ORIGIN = Origin(
    shards=4,
    start_offsets={"plane": {0: 0}},
    control_end=0,
    dimensions={"plane": ["x", "y"]},
    topics={"plane": "plane"},
)


def feeds(**dimensions: tuple[str, ...]) -> dict[str, Feed]:
    return {name: Feed(name, name, "id", names) for name, names in dimensions.items()}


def test_the_configuration_it_was_made_with_fits_and_so_does_one_with_a_further_feed() -> None:
    must_fit(ORIGIN, "var/c", 4, feeds(plane=("x", "y")))
    must_fit(ORIGIN, "var/c", 4, feeds(plane=("x", "y"), line=("x",)))


def test_another_index_fits_as_no_state_is_about_it() -> None:
    for kind in IndexKind:
        must_fit(ORIGIN, "var/c", 4, {"plane": Feed("plane", "plane", "id", ("x", "y"), index=kind)})


def test_another_number_of_shards_is_refused_with_the_one_it_was_made_with() -> None:
    with pytest.raises(ConfigError, match=r"job.shards is 2.*'var/c' was made with 4.*Set job.shards = 4"):
        must_fit(ORIGIN, "var/c", 2, feeds(plane=("x", "y")))


def test_a_feed_that_is_gone_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match=r"state of feed 'plane'.*Put \[feeds.plane\] back"):
        must_fit(ORIGIN, "var/c", 4, feeds(line=("x",)))


def test_dimensions_in_another_order_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"\['y', 'x'\].*\['x', 'y'\], in that order"):
        must_fit(ORIGIN, "var/c", 4, feeds(plane=("y", "x")))


def test_a_feed_that_reads_another_topic_is_refused() -> None:
    moved = {"plane": Feed("plane", "elsewhere", "id", ("x", "y"))}

    with pytest.raises(ConfigError, match=r"feeds.plane.topic is 'elsewhere'.*offsets of 'plane'"):
        must_fit(ORIGIN, "var/c", 4, moved)


def test_attributes_in_another_order_are_refused_as_the_state_holds_their_values() -> None:
    origin = msgspec.structs.replace(ORIGIN, attributes={"plane": ["group", "kind"]})
    feed = Feed("plane", "plane", "id", ("x", "y"), attributes=("group", "kind"))
    must_fit(origin, "var/c", 4, {"plane": feed})

    with pytest.raises(ConfigError, match=r"\['kind', 'group'\].*\['group', 'kind'\], in that order"):
        must_fit(origin, "var/c", 4, {"plane": dataclasses.replace(feed, attributes=("kind", "group"))})


def test_a_feed_that_was_a_plane_cannot_become_degrees() -> None:
    degrees = {"plane": Feed("plane", "plane", "id", ("x", "y"), lonlat=True)}
    must_fit(msgspec.structs.replace(ORIGIN, lonlat=["plane"]), "var/c", 4, degrees)

    with pytest.raises(ConfigError, match=r'feeds.plane.space is "lonlat".*values in "plane"'):
        must_fit(ORIGIN, "var/c", 4, degrees)
