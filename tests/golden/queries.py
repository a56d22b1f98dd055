"""The definitions of the program: every kind of query, each option at least once, and commands with every fault.

Knows definitions as JSON; when they are put is the program's to say.
"""

import json
from typing import Any

Definition = dict[str, Any]

START_MS = 1_700_000_000_000
OWN_TOPIC = "bmq.mine"

_LINE = {"box": {"x": [0, 10]}}
_TRIANGLE = [[0, 0], [12, 0], [0, 12]]
_SQUARE = [[2, 2], [9, 2], [9, 9], [2, 9], [2, 2]]
_HOLE = [[4, 4], [5, 4], [5, 5], [4, 5], [4, 4]]
_PRICES = {"left": "price", "right": "price"}
_WINDOWS: dict[str, Definition] = {
    "time": {"left": {"feed": "left", "window": "15s"}, "right": {"feed": "right", "window": "25s"}},
    "count": {"left": {"feed": "left", "window": 3}, "right": {"feed": "right", "window": 4}},
    "mixed": {"left": {"feed": "slow", "window": "0s"}, "right": {"feed": "brief", "window": 2}},
}


def at(seconds: float) -> int:
    """Return the event time that the program calls ``seconds``, epoch milliseconds."""
    return START_MS + round(1000 * seconds)


def border(feed: str = "line", **options: Any) -> Definition:
    """Return a border query; without ``region`` one over x from 0 to 10."""
    return {"kind": "border", "feed": feed, "region": _LINE, **options}


def transition(pattern: str, **options: Any) -> Definition:
    """Return a transition query over x from 0 to 10."""
    return {"kind": "transition", "feed": "line", "region": _LINE, "pattern": pattern, "within": "12s", **options}


def band_join(left: str = "left", right: str = "right", **options: Any) -> Definition:
    """Return a band join of prices."""
    return {"kind": "band_join", "left": left, "right": right, "on": _PRICES, "band": [-2, 2], **options}


def window_join(windows: str, *conditions: Definition, **options: Any) -> Definition:
    """Return a window join; ``windows`` names a pair of sides."""
    return {"kind": "window_join", **_WINDOWS[windows], "any": list(conditions), **options}


BORDER_QUERIES = {
    "plain": border(),
    'é"\\': border(region={"box": {"x": [5, 15]}}),
    "named": border(streams=["s1", "s3", 'é"']),
    "half": border(region={"box": {"x": [None, 5]}}, bounds="()"),
    "upper": border(region={"box": {"x": [5, 12]}}, bounds="(]"),
    "closed": border(region={"box": {"x": [4, 4]}}, bounds="[]"),
    "where": border("tagged", where={"group": ["g1", None], "size": 5}),
    "stay": border(stay_for="4s"),
    "away": border(away_for="4s"),
    "exit": border(exit_region={"box": {"x": [-2, 13]}}),
    "cool": border(cooldown="20s"),
    "few": border(max_events=3),
    "noise": border("tagged", stay_for="2s", away_for="3s", cooldown="5s", max_events=9, where={"group": "g1"}),
    "pass": border(region={"box": {"x": [6, 7]}}, passes=True),
    "ttl": border(ttl="25s"),
    "until": border(expires_at=at(38)),
    "until-text": border(expires_at="2023-11-14T22:14:05.250Z"),
    "forget": border(stream_ttl="7s"),
    "forget-confirmed": border("brief", region={"box": {"price": [0, 10]}}, stream_ttl="7s", stay_for="1s"),
    "own": border(output_topic=OWN_TOPIC, tags={"text": "é\n", "flag": True, "count": 7, "part": 0.5}),
    "off": border(enabled=False),
    "flat": border("plane", region={"box": {"x": [0, 10], "y": [None, 8]}}, where={"group": "g2"}),
    "polygon": border("plane", region={"polygon": _TRIANGLE}, passes=True),
    "circle": border(
        "plane",
        region={"circle": {"center": [5, 5], "radius": 4.5}},
        exit_region={"polygon": [[-9, -9], [19, -9], [19, 19], [-9, 19]]},
    ),
    "rings": border("plane", region={"geojson": {"type": "Polygon", "coordinates": [_SQUARE, _HOLE]}}),
    "cube": border("cube", region={"box": {"y": [0, 9], "z": [0, 15]}}),
    "pacific": border("globe", region={"box": {"lon": [170, -170], "lat": [-10, 10]}}),
    "disc": border("globe", region={"circle": {"center": [179, 1], "radius": 300_000}}, cooldown="1s"),
    "sheet": border("sheet"),
    "table": border("table", where={"group": "17"}),
    "tardy": border("tardy", where={"group": "g1"}, away_for="3s"),
    "short": border("short"),
}
TRANSITION_QUERIES = {
    "in_then_out": transition("in_then_out"),
    "out_then_in": transition("out_then_in", bounds="[)"),
    "in_not_out": transition("in_not_out", bounds="()"),
    "out_not_in": transition("out_not_in", bounds="(]"),
}
LEVEL_QUERIES: dict[str, Definition] = {
    "match": {"kind": "match", "feed": "line", "region": _LINE, "streams": ["s0", "s2"], "bounds": "()"},
    "match-shape": {"kind": "match", "feed": "plane", "region": {"polygon": _TRIANGLE}, "tags": {"n": 1}},
    "select": {
        "kind": "select",
        "feed": "tagged",
        "any": [{"x": [0, 6]}, {"x": [8, None, "()"], "size": [None, 5, "(]"]}],
        "where": {"group": "g1"},
    },
    "select-globe": {"kind": "select", "feed": "globe", "any": [{"lon": [175, -175]}]},
}
JOIN_QUERIES = {
    "pairs": band_join(),
    "equal": band_join(equal={"left": "group", "right": "group"}, where={"left.size": 5}),
    "changes": band_join(report="queries", band=[None, 0]),
    "late-pairs": band_join("slow", "brief", tags={"n": 1}, ttl="60s"),
    "windows": window_join("time", {"band": [["left.price", "right.price", -1, 1]]}, where={"right.group": "g1"}),
    "counted": window_join(
        "count", {"left.price": [0, 12], "right.size": [4, None]}, equal={"left": "id", "right": "id"}
    ),
    "mixed": window_join("mixed", {"left.price": [0, 6]}, {"band": [["left.price", "right.price", 0, None, "()"]]}),
    "join-own": window_join("count", {"right.price": [3, 9]}, output_topic=OWN_TOPIC, expires_at=at(45), tags={"n": 2}),
    "join-off": band_join(enabled=False),
}
# What a query of any kind may say; `expires_at` in an edit, since it excludes `ttl`.
_COMMON: Definition = {"ttl": "70s", "enabled": True, "output_topic": OWN_TOPIC, "tags": {"all": 1}}
COMMON_QUERIES: dict[str, Definition] = {
    "border-common": border("tagged", where={"group": ["g1", "g2"]}, bounds="[)", **_COMMON),
    "transition-common": {
        "kind": "transition",
        "feed": "tagged",
        "region": {"box": {"x": [0, 10]}},
        "pattern": "out_not_in",
        "within": "3s",
        "where": {"group": "g1"},
        "streams": ["s0", "s1", "s2"],
        "bounds": "[]",
        **_COMMON,
    },
    "match-common": {
        "kind": "match",
        "feed": "tagged",
        "region": {"box": {"x": [0, 4]}},
        "where": {"size": [5, 7.5]},
        "streams": ["s1", "s2"],
        "bounds": "(]",
        **_COMMON,
    },
    "select-common": {
        "kind": "select",
        "feed": "tagged",
        "any": [{"x": [0, 2, "[]"]}, {"size": [7, 8, "[)"]}],
        "where": {"group": "g2"},
        **_COMMON,
    },
    "band-common": band_join(band=[-1, 1], report="pairs", where={"right.group": "g1"}, **_COMMON),
    "window-common": window_join(
        "time",
        {"band": [["left.price", "right.price", 0, 3, "[)"]], "left.size": [5, 8, "(]"], "right.size": [0, 6, "[]"]},
        {"band": [["left.price", "right.price", -3, 0, "(]"], ["left.size", "right.size", 0, 0, "[]"]]},
        {"left.price": [7, 8, "()"], "right.price": [7, 8, "[)"]},
        where={"left.group": "g1"},
        equal={"left": "id", "right": "id"},
        **_COMMON,
    ),
}
EVERY_QUERY = COMMON_QUERIES | BORDER_QUERIES | TRANSITION_QUERIES | LEVEL_QUERIES | JOIN_QUERIES

# Over streams that are inside or not: other regions, options taken away and added, other feeds, other kinds.
EDITS: dict[str, Definition] = {
    "plain": border(region={"box": {"x": [3, 12]}}),
    "named": border(streams=["s1", "s2"]),
    "where": border("tagged", where={"group": "g2"}),
    "stay": border(stay_for="1s", region={"box": {"x": [-1, 11]}}),
    "exit": border(exit_region={"box": {"x": [-1, 11]}}),
    "cool": border(cooldown="2s", tags={"edited": True}),
    "few": border(),
    "ttl": border(ttl="40s"),
    "own": border("plane", output_topic=OWN_TOPIC, tags={"moved": True}),
    "off": border(),
    "polygon": border("plane", region={"polygon": _SQUARE}),
    "in_then_out": transition("in_then_out", region={"box": {"x": [0, 11]}}),
    "out_then_in": border(),
    "new": border(region={"box": {"x": [-4, 30]}}),
    "new-stay": border(region={"box": {"x": [-4, 30]}}, stay_for="3s"),
    "upper": LEVEL_QUERIES["match"],
    "half": band_join(band=[0, 3]),
    "match": {"kind": "match", "feed": "plane", "region": {"box": {"y": [0, 5]}}, "bounds": "[]", "enabled": True},
    "pairs": band_join(band=[-3, 1]),
    "changes": band_join(),
    "windows": window_join("count", {"band": [["left.price", "right.price", -1, 1]]}),
    "join-off": border("left", region={"box": {"price": [0, 9]}}),
    "gone": border(expires_at=at(1)),
    **{query_id: {**query, "ttl": None, "expires_at": at(80)} for query_id, query in COMMON_QUERIES.items()},
}
SILENT = {
    "silent": border(initial="silent"),
    "silent-away": border("plane", region={"box": {"x": [0, 30]}}, initial="silent", away_for="2s"),
}


def as_command(query_id: str, definition: Definition | None) -> tuple[bytes, bytes | None]:
    """Return the key and value of a control record; None deletes."""
    return query_id.encode(), None if definition is None else json.dumps(definition, ensure_ascii=False).encode()


WRONG_COMMANDS: list[tuple[bytes | None, bytes | None]] = [
    (None, b"{}"),
    (b"\xff", b"{}"),
    as_command("few-1", border("plane", region={"polygon": _TRIANGLE})),
    (b"q" * 257, b"{}"),
    (b"wrong", b'{"kind":"border","kind":"border"}'),
    (b"plain", b"[1]"),
    *(
        as_command("wrong", definition)
        for definition in (
            {"feed": "line"},
            {"kind": "borders"},
            {"kind": 7},
            border(regio=1),
            border(on=_PRICES),
            border("lines"),
            border(region={"box": {"y": [0, 1]}}),
            border(region={"box": {"x": [9, 1]}}),
            border(region={**_LINE, "polygon": _TRIANGLE}),
            border(region={"box": {"x": ["0", 1]}}),
            border(stay_for="4"),
            border(ttl="0s"),
            border(max_events=0),
            border(where={"group": "g1"}),
            border(output_topic="elsewhere"),
            border(output_topic="bmq.line"),
            border("cube", region={"box": {"z": [0, 1]}}, passes=True),
            border(exit_region={"box": {"x": [1, 9]}}),
            {"kind": "border", "feed": "line"},
            {"kind": "select", "feed": "line", "any": []},
            band_join("left", "left"),
            band_join("left", "line"),
            window_join("count", {}),
            window_join("count", {"bands": []}),
            border(bounds="[["),
            border(streams=[]),
            border(tags={"a": [1]}),
            border(tags={"a": "x" * 16_400}),
            border(ttl="1s", expires_at=at(1)),
            border(expires_at="tomorrow"),
            border(output_topic="?"),
            border(stay_for="9999999d"),
            window_join("count") | {"left": {"feed": "left", "window": 10_000_000}},
            border("tagged", where={"group": []}),
            border(region={"box": {}}),
            border(region={"box": {"x": [1, 2, 3]}}),
            border(region={"box": {"x": [1, 1]}}),
            border("plane", region={"polygon": [[0, 0], [1, 1]]}),
            border("plane", region={"polygon": [[0, 0], [4, 4], [4, 0], [0, 4]]}),
            border("plane", region={"circle": {"center": [0, 0], "radius": -1}}),
            border("plane", region={"circle": {"center": [0, 0], "radios": 1}}),
            border("plane", region={"geojson": {"type": "Point", "coordinates": [0, 0]}}),
            border("globe", region={"box": {"lat": [0, 91]}}),
            border(region={"circle": {"center": [0, 0], "radius": 1}}),
            {"kind": "select", "feed": "line", "any": [{"y": [0, 1]}]},
            {"kind": "select", "feed": "line", "any": [{"x": [0]}]},
            {"kind": "match", "feed": "line", "region": _LINE, "passes": True},
            transition("in_then_in"),
            band_join(on={"left": "cost", "right": "price"}),
            band_join(band=[2, -2]),
            band_join(equal={"left": "grop", "right": "group"}),
            band_join(where={"group": "g1"}),
            window_join("count", {"band": [["right.price", "left.price", 0, 1]]}),
            {"kind": "window_join", **_WINDOWS["count"], "left": {"feed": "left", "window": 0}, "any": [{}]},
            {"kind": "window_join", **_WINDOWS["count"], "left": {"feed": "left", "window": 1.5}, "any": [{}]},
        )
    ),
    as_command("nobody", None),
]
