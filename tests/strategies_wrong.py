"""Definitions that must be refused and records that must become dead letters: for `tests.strategies`."""

import json
from typing import Any

from hypothesis import strategies as st

from tests.programs import ALL_FEEDS, TOO_FAR_AHEAD, BadRecord
from tests.strategies_joins import FeedPair


def bad_definitions(feed: str, joins: tuple[FeedPair, ...]) -> st.SearchStrategy[tuple[bytes, str]]:
    """Draw a definition that must be refused, and the code."""
    name = ALL_FEEDS[feed].dimensions[-1]  # the latitude: longitudes from 1 to 0 go over the antimeridian
    border = {"kind": "border", "feed": feed, "region": {"box": {name: [0, 1]}}}
    select = {"kind": "select", "feed": feed, "any": [{name: [0, 1]}]}
    wrong: list[tuple[bytes, str]] = [
        (b'{"kind": "border"', "not_json"),
        (_json(border | {"feed": "nope"}), "unknown_feed"),
        (_json(border | {"region": {"box": {name: [1, 0]}}}), "bad_region"),
        (_json(border | {"region": {"box": {"nope": [0, 1]}}}), "unknown_dimension"),
        (_json(border | {"regoin": 1}), "unknown_field"),
        (_json(border | {"kind": "match", "passes": True}), "bad_option"),
        (_json(select | {"any": [{}]}), "bad_region"),
        (_json(select | {"any": [{"group": [0, 1]}, {"nope": [0, 1]}]}), "unknown_dimension"),
    ]
    for left, right in joins:
        on = {"left": ALL_FEEDS[left].dimensions[0], "right": ALL_FEEDS[right].dimensions[0]}
        join = {"kind": "band_join", "left": left, "right": right, "on": on, "band": [0, 1]}
        wrong += [
            (_json(join | {"right": left}), "bad_option"),
            (_json(join | {"band": [1, 0]}), "bad_region"),
            (_json(join | {"on": on | {"left": "nope"}}), "unknown_dimension"),
        ]
    return st.sampled_from(wrong)


@st.composite
def bad_records(draw: st.DrawFn, feed: str, partition: int, time: int) -> BadRecord:
    """Draw a record that must become a dead letter."""
    right = {"id": "a", "ts": time} | dict.fromkeys(ALL_FEEDS[feed].dimensions, 0.5)
    first = ALL_FEEDS[feed].dimensions[0]
    wrong = [
        (b"[1, 2]", "not_json"),
        (_json(right | {first: None}), "missing_field"),
        (_json(right | {first: "0.5"}), "wrong_type"),
        (_json(right).replace(b"0.5", b"1e999", 1), "not_finite"),
        (_json(right | {"ts": TOO_FAR_AHEAD}), "out_of_range"),
    ]
    if feed == "globe":
        wrong.append((_json(right | {"lat": 90.5}), "out_of_range"))
    return BadRecord(feed, partition, *draw(st.sampled_from(wrong)))


def _json(fields: dict[str, Any]) -> bytes:
    return json.dumps(fields).encode()
