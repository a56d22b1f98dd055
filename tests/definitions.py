"""Definitions of queries, and what the control topic makes of them, for the tests of definitions."""

import json
from typing import Any

from bmq.records import Feed, Format, Installation, JoinQuery, Put, Refused, RegionQuery
from bmq.wire.control import parse_command

FEEDS = {
    "stocks": Feed("stocks", "stocks", "symbol", ("price",), "ts"),
    "vehicles": Feed("vehicles", "bmq.vehicles", "id", ("x", "y"), "ts", attributes=("group", "kind")),
    "lines": Feed("lines", "lines", "id", ("x",), "ts", Format.CSV, attributes=("group",)),
    "cube": Feed("cube", "cube", "id", ("x", "y", "z"), "ts"),
    "globe": Feed("globe", "globe", "id", ("lon", "lat"), "ts", lonlat=True, join=True),
    "left": Feed("left", "left", "id", ("price", "size"), "ts", attributes=("group", "qty"), join=True),
    "right": Feed("right", "right", "@key", ("price",), "ts", attributes=("group",), join=True),
}
RESERVED = ("bmq.control", "bmq.dead.letter")
INSTALLATION = Installation(FEEDS, "bmq.", RESERVED)


def border(**fields: Any) -> dict[str, Any]:
    """A good definition with some fields replaced; ... takes one out."""
    whole = {"kind": "border", "feed": "vehicles", "region": {"box": {"x": [0, 10], "y": [0, 10]}}} | fields
    return {name: value for name, value in whole.items() if value is not ...}


def transition(**fields: Any) -> dict[str, Any]:
    """A good definition of a transition."""
    return border(kind="transition", pattern="in_then_out", within="3m") | fields


def match(**fields: Any) -> dict[str, Any]:
    """A good definition of a match query."""
    return border(kind="match", **fields)


def select(*conjunctions: Any, **fields: Any) -> dict[str, Any]:
    """A good definition where no conjunctions are given."""
    whole = {"kind": "select", "feed": "vehicles", "any": list(conjunctions) or [{"x": [0, 10]}]} | fields
    return {name: value for name, value in whole.items() if value is not ...}


def band_join(**fields: Any) -> dict[str, Any]:
    """A good definition with some fields replaced; ... takes one out."""
    on = {"left": "price", "right": "price"}
    whole = {"kind": "band_join", "left": "left", "right": "right", "on": on, "band": [-1, 1]} | fields
    return {name: value for name, value in whole.items() if value is not ...}


def window_join(*conjunctions: Any, **fields: Any) -> dict[str, Any]:
    """A good definition where no conjunctions are given."""
    sides = {"left": {"feed": "left", "window": "10s"}, "right": {"feed": "right", "window": 1000}}
    usual = [{"band": [["left.price", "right.price", -1, 1]]}]
    whole = {"kind": "window_join", **sides, "any": list(conjunctions) or usual} | fields
    return {name: value for name, value in whole.items() if value is not ...}


def box(**intervals: Any) -> dict[str, Any]:
    """A query of a box."""
    return border(region={"box": intervals})


def accepted(definition: dict[str, Any]) -> RegionQuery:
    """Return the query that a definition becomes."""
    command = parse_command(b"q1", json.dumps(definition).encode(), 17, INSTALLATION)
    assert isinstance(command, Put), command
    assert isinstance(command.query, RegionQuery)
    return command.query


def accepted_join(definition: dict[str, Any]) -> JoinQuery:
    """Return the join that a definition becomes."""
    command = parse_command(b"q1", json.dumps(definition).encode(), 17, INSTALLATION)
    assert isinstance(command, Put), command
    assert isinstance(command.query, JoinQuery)
    return command.query


def refused(value: dict[str, Any] | bytes, key: bytes | None = b"q1") -> Refused:
    """Return how a value is refused."""
    encoded = value if isinstance(value, bytes) else json.dumps(value).encode()
    command = parse_command(key, encoded, 17, INSTALLATION)
    assert isinstance(command, Refused), command
    assert command.offset == 17
    return command
