"""Joins and select queries over two feeds, and what they say, written to be obviously right."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

STREAMS = {"left": [f"l{n}" for n in range(6)], "right": [f"r{n}" for n in range(6)]}
FEED = {"dimensions": ["price"], "event_time_unit": "ms", "join": True}
FEEDS = {"left": FEED, "right": FEED}
# Whole numbers, as prices are, so that bands begin and end at differences that occur.
BANDS = {f"b{n}": (n - 4, n - 2) for n in range(8)}
JOIN = {"kind": "band_join", "left": "left", "right": "right", "on": {"left": "price", "right": "price"}}
ALIKE = {"equal": {"left": "group", "right": "group"}}
# The last eight left readings are one round and two readings of the round before; three milliseconds are two rounds.
WINDOWS = {
    "kind": "window_join",
    "left": {"feed": "left", "window": 8},
    "right": {"feed": "right", "window": "3ms"},
    "any": [{"band": [["left.price", "right.price", 0, 1]], "right.group": [1, None]}],
}
SELECT = {"kind": "select", "feed": "left", "any": [{"price": [None, 2]}, {"price": [7, 9], "group": [1, None]}]}

Reading = dict[str, Any]
Pair = tuple[str, str, str, str, int]  # query id, right stream, sign, reason, event time
Found = tuple[str, int, int]  # right stream, event times of left and right
Selected = tuple[str, int]  # query id, event time


class Definition:
    """What the queries say, by left stream."""

    def __init__(self) -> None:
        self._all: dict[str, list[Reading]] = {"left": [], "right": []}
        self._last: dict[str, dict[str, Reading]] = {"left": {}, "right": {}}
        self.pairs: dict[str, list[Pair]] = defaultdict(list)
        self.found: dict[str, list[Found]] = defaultdict(list)
        self.selected: dict[str, list[Selected]] = defaultdict(list)

    def read(self, side: str, reading: Reading) -> None:
        if side == "left" and (reading["price"] < 2 or (7 <= reading["price"] < 9 and reading["group"] >= 1)):
            self.selected[reading["id"]].append(("s", reading["ts"]))
        self._find(side, reading)
        before = self._pairs_of(side, reading["id"])
        reason = "moved" if reading["id"] in self._last[side] else "first_seen"
        self._last[side][reading["id"]] = reading
        after = self._pairs_of(side, reading["id"])
        for sign, changed in (("-", before - after), ("+", after - before)):
            for query_id, left, right in sorted(changed):
                self.pairs[left].append((query_id, right, sign, reason, reading["ts"]))

    def tell(self, events: Iterable[dict[str, Any]]) -> None:
        """Take up what events say, in place of readings."""
        for event in events:
            match event["kind"]:
                case "select":
                    self.selected[event["stream_id"]].append((event["query_id"], event["event_time"]))
                case "window_join":
                    left, right = event["left"], event["right"]
                    self.found[left["stream_id"]].append((right["stream_id"], left["event_time"], right["event_time"]))
                case "band_join":
                    pair = event["query_id"], event["right"]["stream_id"], event["sign"], event["reason"]
                    self.pairs[event["left"]["stream_id"]].append((*pair, event["event_time"]))

    def _find(self, side: str, reading: Reading) -> None:
        self._all[side].append(reading)
        if side == "left":
            in_window = [earlier for earlier in self._all["right"] if reading["ts"] - earlier["ts"] <= 3]
        else:
            in_window = self._all["left"][-8:]
        for earlier in in_window:
            left, right = (reading, earlier) if side == "left" else (earlier, reading)
            if 0 <= left["price"] - right["price"] <= 1 and right["group"] >= 1:
                self.found[left["id"]].append((right["id"], left["ts"], right["ts"]))

    def _pairs_of(self, side: str, stream: str) -> set[tuple[str, str, str]]:
        return {
            (query_id, left["id"], right["id"])
            for left in self._last["left"].values()
            for right in self._last["right"].values()
            for query_id, holds in QUERIES.items()
            if stream == {"left": left, "right": right}[side]["id"] and holds(left, right)
        }


def _in_band(lo: int, hi: int) -> Callable[[Reading, Reading], bool]:
    return lambda left, right: lo <= left["price"] - right["price"] <= hi


QUERIES: dict[str, Callable[[Reading, Reading], bool]] = {
    **{query_id: _in_band(*band) for query_id, band in BANDS.items()},
    "alike": lambda left, right: _in_band(-2, 2)(left, right) and left["group"] == right["group"],
}
DEFINITIONS: dict[str, dict[str, Any]] = {
    **{query_id: {**JOIN, "band": band} for query_id, band in BANDS.items()},
    "alike": {**JOIN, "band": [-2, 2], **ALIKE},
    "w": WINDOWS,
    "s": SELECT,
}
