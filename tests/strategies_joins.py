"""Random joins for `tests.strategies`: bands and windows on the grid of values and times, where readings meet them."""

from typing import Any

from hypothesis import strategies as st

from tests.oracle import Definition
from tests.programs import ALL_FEEDS
from tests.strategies_regions import bounds, durations, expiry_times, grid, intervals_with_ends, wheres

JOIN_KINDS = ("band_join", "window_join")
SIDES = ("left", "right")
FeedPair = tuple[str, str]

# Readings are some milliseconds apart, and few.
windows = st.sampled_from(["0ms", "1ms", "2ms", "3ms", "10ms", 1, 2, 3])


@st.composite
def join_definitions(draw: st.DrawFn, pairs: tuple[FeedPair, ...], kinds: tuple[str, ...]) -> Definition:
    """Draw a join of two feeds that the service must accept."""
    return draw(_joins_of(draw(st.sampled_from(pairs)), draw(st.sampled_from(kinds))))


@st.composite
def edited_joins(draw: st.DrawFn, definition: Definition) -> Definition:
    """Draw a join that differs in one thing from another one of the same kind and feeds."""
    sides = [definition[side] for side in ("left", "right")]
    left, right = (side if isinstance(side, str) else side["feed"] for side in sides)
    other = draw(_joins_of((left, right), definition["kind"]))
    name = draw(st.sampled_from([*(other.keys() | definition.keys()) - {"kind"}]))
    kept = {one: value for one, value in definition.items() if one != name}
    return _allowed(kept | {one: value for one, value in other.items() if one == name})


@st.composite
def _joins_of(draw: st.DrawFn, feeds: FeedPair, kind: str) -> Definition:
    left, right = feeds
    if kind == "band_join":
        on = {side: draw(st.sampled_from(ALL_FEEDS[feed].dimensions)) for side, feed in zip(SIDES, feeds, strict=True)}
        definition: Definition = {"kind": kind, "left": left, "right": right, "on": on, "band": draw(_bands())[:2]}
    else:
        sides = {side: {"feed": feed, "window": draw(windows)} for side, feed in zip(SIDES, feeds, strict=True)}
        definition = {"kind": kind, **sides, "any": draw(st.lists(_conjunctions(feeds), min_size=1, max_size=2))}
    return _allowed(definition | draw(_options(feeds)))


@st.composite
def _bands(draw: st.DrawFn) -> list[Any]:
    """Draw [lo, hi], with other ends in the third place."""
    lo, hi = sorted([draw(grid), draw(grid)])
    ends = draw(bounds) if lo < hi else "[]"
    unbounded = draw(st.sampled_from(["", "", "below", "above", "both"]))
    band = [None if unbounded in ("below", "both") else lo, None if unbounded in ("above", "both") else hi]
    return [*band, ends] if draw(st.booleans()) else [*band]


@st.composite
def _conjunctions(draw: st.DrawFn, feeds: FeedPair) -> dict[str, Any]:
    columns = {side: (*ALL_FEEDS[feed].dimensions, "size") for side, feed in zip(SIDES, feeds, strict=True)}
    conjunction: dict[str, Any] = {}
    n_bands = draw(st.sampled_from([0, 1, 1, 1, 2]))
    if n_bands:
        conjunction["band"] = [
            [*(f"{side}.{draw(st.sampled_from(columns[side]))}" for side in SIDES), *draw(_bands())]
            for _ in range(n_bands)
        ]
    for side in draw(st.sampled_from([(), (), ("left",), ("right",), SIDES])) if n_bands else SIDES:
        conjunction[f"{side}.{draw(st.sampled_from(columns[side]))}"] = draw(intervals_with_ends())
    return conjunction


@st.composite
def _options(draw: st.DrawFn, feeds: FeedPair) -> Definition:
    fields = {
        side: st.sampled_from(["id", "group", "size", *ALL_FEEDS[feed].dimensions])
        for side, feed in zip(SIDES, feeds, strict=True)
    }
    every: dict[str, st.SearchStrategy[Any]] = {
        "where": st.fixed_dictionaries({f"{side}.group": wheres for side in SIDES[:1]})
        | st.fixed_dictionaries({f"{side}.group": wheres for side in SIDES[1:]}),
        "equal": st.fixed_dictionaries(fields) | st.sampled_from([{side: "id" for side in SIDES}]),
        "report": st.sampled_from(["queries", "queries", "pairs"]),
        "enabled": st.sampled_from([False, True, True]),
        "ttl": durations,
        "expires_at": expiry_times,
        "tags": st.sampled_from([{}, {"shop": "17"}]),
    }
    names = ["tags", "report", *every, "report", "tags"]  # conditions seldom, lest nothing were joined
    chosen = draw(st.lists(st.sampled_from(names), max_size=2, unique=True))
    return {name: draw(every[name]) for name in chosen}


def _allowed(definition: Definition) -> Definition:
    """Return the definition without options that do not go with its kind or each other."""
    refused = {"report"} if definition["kind"] == "window_join" else set()
    if "expires_at" in definition:
        refused.add("ttl")
    return {name: value for name, value in definition.items() if name not in refused}
