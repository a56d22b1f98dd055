"""Tenants: whose query it is by its id, and what its tenant may name."""

from typing import Any

import pytest

from bmq.config import Config
from bmq.errors import ConfigError, ControlError
from bmq.records import Delete, Feed, Installation, Tenant
from bmq.wire.control import parse_command, validate_definition

FEEDS = {
    name: Feed(name, name, "id", ("x",), "ts", join=name != "cars") for name in ("cars", "stocks", "quotes", "sensors")
}
TENANTS = (
    Tenant("acme", "acme.", frozenset({"cars"}), "bmq.acme."),
    Tenant("deep", "acme.deep.", frozenset({"stocks", "quotes"})),
    Tenant("none", "none.", frozenset()),
)
INSTALLATION = Installation(FEEDS, "bmq.", tenants=TENANTS)


def border(feed: str, **options: Any) -> dict[str, Any]:
    return {"kind": "border", "feed": feed, "region": {"box": {"x": [0, 10]}}, **options}


JOIN = {"kind": "band_join", "left": "stocks", "right": "quotes", "on": {"left": "x", "right": "x"}, "band": [-1, 1]}


@pytest.mark.parametrize(
    ("query_id", "definition"),
    [
        ("acme.q", border("cars")),
        ("acme.q", border("cars", output_topic="bmq.acme.zone")),
        ("acme.deep.q", border("stocks", output_topic="bmq.other")),
        ("acme.deep.q", JOIN),
    ],
)
def test_a_tenant_puts_what_it_may(query_id: str, definition: dict[str, Any]) -> None:
    validate_definition(query_id, definition, INSTALLATION)


@pytest.mark.parametrize(
    ("query_id", "definition", "part"),
    [
        ("q", border("cars"), "No tenant has query ids like"),
        ("acme", border("cars"), "No tenant has query ids like"),
        ("acme.q", border("sensors"), "'acme' may watch these feeds: cars; but not"),
        ("acme.q", border("nowhere"), "'acme' may watch these feeds: cars; but not"),
        ("acme.q", border("cars", output_topic="bmq.zone"), "must begin with 'bmq.acme.'"),
        ("acme.deep.q", border("cars"), "'deep' may watch these feeds: quotes, stocks; but not"),
        ("acme.q", JOIN, "'acme' may watch these feeds: cars; but not"),
        ("none.q", border("cars"), "'none' may watch these feeds: none; but not"),
    ],
)
def test_all_else_is_forbidden(query_id: str, definition: dict[str, Any], part: str) -> None:
    with pytest.raises(ControlError) as refusal:
        validate_definition(query_id, definition, INSTALLATION)
    assert refusal.value.code == "forbidden"
    assert part in str(refusal.value)


def test_without_tenants_everybody_may() -> None:
    validate_definition("q", border("cars"), Installation(FEEDS, "bmq."))


def test_the_prefix_of_the_installation_still_counts() -> None:
    with pytest.raises(ControlError) as refusal:
        validate_definition("acme.deep.q", border("stocks", output_topic="elsewhere"), INSTALLATION)
    assert refusal.value.code == "bad_option"


def test_a_query_of_before_there_were_tenants_can_be_deleted() -> None:
    assert parse_command(b"old", None, 3, INSTALLATION) == Delete(3, "old")


def test_the_configuration_names_tenants_and_its_faults_are_found_together() -> None:
    feed = {"topic": "cars", "stream_id": "id", "dimensions": ["x"]}
    config = Config(
        feeds={"cars": feed}, tenants={"acme": {"prefix": "acme.", "feeds": ["cars"]}, "rest": {"prefix": ""}}
    )
    assert config.installation().tenants == (Tenant("acme", "acme.", frozenset({"cars"})), Tenant("rest", ""))

    with pytest.raises(ConfigError) as refused:
        Config(
            feeds={"cars": feed}, tenants={"a": {"prefix": "a.", "feeds": ["boats"]}, "b": {"prefix": "a."}, "c": {}}
        )
    said = str(refused.value)
    assert 'tenants.a.feeds: there is no feed "boats"; known here: cars' in said
    assert 'tenants.b.prefix = "a.": tenants.a has it; choose another' in said
    assert "tenants.c.prefix is missing" in said
