"""Joins of the largest numbers: differences beyond them are in bands without an end, and nobody is warned."""

import json
import sys
import warnings
from typing import Any

import pytest

from bmq.records import Feed
from tests.pure_service import PureService

FEEDS = {name: Feed(name, name, "id", ("x",), "ts", join=True) for name in ("left", "right")}
MOST = sys.float_info.max
SIDES = {"left": "left", "right": "right"}


def band_join(lo: float | None, hi: float | None) -> dict[str, Any]:
    return {"kind": "band_join", **SIDES, "on": {"left": "x", "right": "x"}, "band": [lo, hi]}


def window_join(lo: float | None, hi: float | None) -> dict[str, Any]:
    sides = {side: {"feed": side, "window": "10s"} for side in SIDES}
    return {"kind": "window_join", **sides, "any": [{"band": [["left.x", "right.x", lo, hi]]}]}


@pytest.mark.parametrize("join", [band_join, window_join])
def test_differences_beyond_the_largest_number_are_in_bands_without_that_end(join: Any) -> None:
    bands = {"above": (0, None), "below": (None, 0), "all": (None, None), "near": (-1, 1)}
    service = PureService(FEEDS, n_shards=1)
    readings = [json.dumps({"id": str(x), "ts": 1, "x": x}).encode() for x in (-MOST, 0.0, MOST)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        commands = [(query_id, json.dumps(join(*band)).encode()) for query_id, band in bands.items()]
        service.run_batch(commands, {"left": readings * 20, "right": readings})

    last = {event["query_id"]: set[tuple[float, float]]() for event in service.events}
    for event in service.events:
        last[event["query_id"]].add((event["left"]["value"]["x"], event["right"]["value"]["x"]))
    numbers = (-MOST, 0, MOST)
    pairs = {(one, other) for one in numbers for other in numbers}
    assert last["above"] == {(one, other) for one, other in pairs if one >= other}
    assert last["below"] == {(one, other) for one, other in pairs if one <= other}
    assert last["all"] == pairs
    assert last["near"] == {(one, one) for one in numbers}
