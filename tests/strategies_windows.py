"""Window joins and readings of two sides, on a coarse grid."""

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from bmq.records import Band, Conjunction, JoinQuery, JoinSide, Kind, Region, Where

NO_NUMBER = -np.inf  # in the second column, of an attribute that is no number
LEAST = -np.finfo(np.float64).max  # the lower end of an interval of an attribute that has none

# Coarse, so that readings meet the ends of intervals, bands and windows; tenths, so that differences are rounded.
_numbers = st.integers(-3, 3).map(float) | st.integers(-30, 30).map(lambda tenths: tenths / 10)
_maybe_numbers = _numbers | st.just(NO_NUMBER)
_times = st.integers(0, 12)


@dataclass(frozen=True)
class Reading:
    """A reading of one side. ``code`` is its attribute kind, ``key`` its attribute key, of which -1 is null."""

    side: int
    columns: tuple[float, float]
    time: int
    code: int
    key: int
    own: bool = True


readings = st.builds(
    Reading,
    side=st.integers(0, 1),
    columns=st.tuples(_numbers, _maybe_numbers),
    time=_times,
    code=st.integers(0, 2),
    key=st.integers(-1, 1),
)


@st.composite
def _intervals(draw: st.DrawFn, column: int) -> tuple[float, float]:
    if draw(st.booleans()):
        return -np.inf, np.inf
    lo, hi = sorted(draw(st.lists(_numbers, min_size=2, max_size=2, unique=True)))
    open_end = LEAST if column == 1 else -np.inf
    return draw(st.sampled_from([(lo, hi), (open_end, hi), (lo, np.inf)]))


@st.composite
def _regions(draw: st.DrawFn) -> Region:
    ends = [draw(_intervals(column)) for column in range(2)]
    return Region(tuple(lo for lo, _ in ends), tuple(hi for _, hi in ends))


@st.composite
def _bands(draw: st.DrawFn) -> Band:
    lo, hi = sorted((draw(_numbers), draw(_numbers)))
    lo, hi = draw(st.sampled_from([(lo, hi), (lo, hi), (lo, np.inf), (-np.inf, hi), (-np.inf, np.inf)]))
    return Band(draw(st.integers(0, 1)), draw(st.integers(0, 1)), lo, hi)


_conjunctions = st.builds(Conjunction, _regions(), _regions(), st.lists(_bands(), max_size=2).map(tuple))
_wheres: st.SearchStrategy[Where] = st.sampled_from([(), (), (("kind", ("0",)),), (("kind", ("1", "2")),)])
_lengths = st.tuples(st.integers(1, 6), st.none()) | st.tuples(st.none(), st.integers(1, 4))


@st.composite
def window_queries(draw: st.DrawFn) -> JoinQuery:
    """Draw a window join of the feeds l and r."""
    equal = draw(st.sampled_from([None, None, "key"]))
    left, right = (JoinSide(feed, draw(_wheres), equal, *draw(_lengths)) for feed in ("l", "r"))
    alternatives = tuple(draw(st.lists(_conjunctions, min_size=1, max_size=3)))
    return JoinQuery("q", 1, Kind.WINDOW_JOIN, left, right, alternatives)
