"""How the runner reads scenarios and writes events, for every kind that docs/wire-format.md names."""

import json
from typing import Any

import pytest

from bmq.conformance.event_text import about, event_text
from bmq.conformance.scenario import CLOCK_STREAM, Commands, Publish, parse

pytestmark = pytest.mark.unit

SECOND = 1_700_000_000_000


def event(**fields: object) -> dict[str, Any]:
    basic = {"kind": "border", "query_id": "s1_q", "sign": "+", "stream_id": "a", "reason": "moved"}
    return basic | {"event_time": SECOND + 2_000} | fields


PAIR = {"query_id": "s1_q", "left": {"stream_id": "a"}, "right": {"stream_id": "z"}, "event_time": SECOND}


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        (event(), "+q a@2 moved"),
        (event(sign="-", reason="query_deleted", event_time=SECOND + 100_000), "-q a@100 query_deleted"),
        (event(event_time=SECOND + 1), "+q a@0.001 moved"),
        (event(event_time=SECOND - 1_500), "+q a@-1.5 moved"),
        (event(**{"pass": True}), "+q a@2 moved pass"),
        (event(confirmed_time=SECOND + 15_000), "+q a@2 moved confirmed@15"),
        (event(kind="transition", pattern="in_then_out", began=SECOND + 1_000), "in_then_out q a@1..2"),
        (event(kind="match"), "match q a@2"),
        (event(kind="select"), "select q a@2"),
        (PAIR | {"kind": "band_join", "sign": "-"}, "-q a~z@0"),
        (PAIR | {"kind": "window_join"}, "window_join q a~z@0"),
        ({name: PAIR[name] for name in PAIR if name != "right"} | {"kind": "band_join"}, "band_join q a~@0"),
        ({name: PAIR[name] for name in PAIR if name != "left"} | {"kind": "band_join"}, "band_join q ~z@0"),
    ],
)
def test_an_event_has_one_text(fields: dict[str, Any], text: str) -> None:
    assert event_text(fields, "s1_") == text


@pytest.mark.parametrize(
    ("text", "stream"),
    [
        ("+q a@2 moved confirmed@15", "a"),
        ("in_then_out q a@1..3", "a"),
        ("-q a~z@5", "a~z"),
        ("match q a@1", "a"),
    ],
)
def test_a_text_is_about_one_stream_or_pair(text: str, stream: str) -> None:
    assert about(text) == stream


def test_feeds_and_queries_get_names_of_their_own() -> None:
    definition = {"kind": "band_join", "left": "left", "right": {"feed": "right"}}
    steps = [
        {"put": {"q": definition}},
        {"delete": ["q"]},
        {"feed": "left", "read": [["a", 1.5, "NaN", {"group": "g"}]]},
    ]
    scenario = parse(json.dumps({"name": "n", "rule": "r", "steps": steps}), "s7_")

    renamed = {"kind": "band_join", "left": "s7_left", "right": {"feed": "s7_right"}}
    reading = {"id": "a", "ts": SECOND + 1_500, "price": "NaN", "group": "g"}
    assert set(scenario.feeds) == {"s7_left", "s7_right"}
    assert scenario.steps == (
        Commands((("s7_q", json.dumps(renamed).encode()),), "accepted"),
        Commands((("s7_q", None),), "deleted"),
        Publish("s7_left", (json.dumps(reading).encode(),)),
    )


@pytest.mark.parametrize(
    ("ends", "away"), [([0, 10], 1e9), ([None, 40], 1e9), ([40, None], -1e9), ([None, None], None)]
)
def test_the_clock_stands_outside_every_region(ends: list[float | None], away: float | None) -> None:
    put = {"q": {"kind": "border", "feed": "line", "region": {"box": {"x": ends}}}}
    raw = {"name": "n", "rule": "r", "steps": [{"put": put}, {"feed": "line", "clock": 5}]}
    scenario = parse(json.dumps(raw), "s1_")

    if away is None:
        assert "hold every far point" in str(scenario.broken)
    else:
        reading = {"id": CLOCK_STREAM, "ts": SECOND + 5_000, "x": away}
        assert scenario.steps[1] == Publish("s1_line", (json.dumps(reading).encode(),))


@pytest.mark.parametrize(
    ("feed", "band", "away"),
    [
        ("left", [-1, 1], 1e9),
        ("left", [0, None], -1e9),
        ("right", [0, None], 3e9),
        ("right", [None, 0], -3e9),
        ("left", [None, None], None),
    ],
)
def test_the_clock_stands_out_of_every_band(feed: str, band: list[float | None], away: float | None) -> None:
    join = {"kind": "band_join", "left": "left", "right": "right", "on": {"left": "price", "right": "price"}}
    asked = {"band": [["left.price", "right.price", *band]]}
    windows = {side: {"feed": side, "window": 1} for side in ("left", "right")}
    for put in (join | {"band": band}, {"kind": "window_join", **windows, "any": [asked]}):
        raw = {"name": "n", "rule": "r", "steps": [{"put": {"q": put}}, {"feed": feed, "clock": 5}]}
        scenario = parse(json.dumps(raw), "s1_")

        if away is None:
            assert "hold every far point" in str(scenario.broken)
        else:
            reading = {"id": CLOCK_STREAM, "ts": SECOND + 5_000, "price": away}
            assert scenario.steps[1] == Publish(f"s1_{feed}", (json.dumps(reading).encode(),))
