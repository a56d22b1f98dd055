"""Which changes of a configuration a checkpoint can follow."""

from dataclasses import replace
from typing import Any

import pytest

from bmq.errors import ConfigError
from bmq.job.checkpoint import Origin, bound_options
from bmq.job.upgrade import upgrade_to
from bmq.records import Feed, Format

FEED = Feed("plane", "plane", "id", ("x", "y"), event_time="ts", attributes=("group",), max_lateness_ms=5_000)
OTHER = Feed("line", "line", "@key", ("x",))
ORIGIN = Origin(shards=4, start_offsets={}, control_end=0, feeds=bound_options({"plane": FEED, "line": OTHER}))


def upgrade(**changes: Any) -> dict[str, int]:
    """Return the number of new attributes of each feed."""
    return dict(upgrade_to(ORIGIN, {"plane": replace(FEED, **changes), "line": OTHER}).n_new)


def test_a_checkpoint_follows_attributes_behind_the_old_ones() -> None:
    feeds = {"plane": replace(FEED, attributes=("group", "size", "weight")), "line": replace(OTHER, attributes=("a",))}

    found = upgrade_to(ORIGIN, feeds)

    assert found.n_new == {"plane": 2, "line": 1}
    assert found.feeds == bound_options(feeds)


def test_a_new_feed_and_options_that_are_not_bound_are_no_upgrade() -> None:
    feeds = {"plane": replace(FEED, stream_ttl_ms=1_000), "line": OTHER, "new": replace(OTHER, name="new")}

    found = upgrade_to(ORIGIN, feeds)

    assert found.n_new == {}
    assert found.feeds == ORIGIN.feeds


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"topic": "other"}, "offsets are about the old topic"),
        ({"dimensions": ("x", "y", "z")}, "a number for each of the old ones"),
        ({"attributes": ()}, "new ones can only stand behind them"),
        ({"attributes": ("size", "group")}, "new ones can only stand behind them"),
        ({"lonlat": True}, "were read for the old one"),
        ({"format": Format.CSV}, "may have other texts"),
        ({"stream_id": "name"}, "streams are known by the old one"),
        ({"event_time": None}, "timers have fired"),
        ({"max_lateness_ms": 0}, "readings are held"),
        ({"join": True}, "from its first reading on"),
    ],
)
def test_other_changes_are_refused_with_both_values_and_the_reason(change: dict[str, Any], why: str) -> None:
    with pytest.raises(ConfigError, match=rf"feeds\.plane\.\w+ is .*, and was .*{why}"):
        upgrade(**change)


def test_all_faults_are_in_one_message() -> None:
    with pytest.raises(ConfigError, match=r"(?s)feeds\.plane\.topic.*feeds\.line is missing.*new folder"):
        upgrade_to(ORIGIN, {"plane": replace(FEED, topic="other")})
