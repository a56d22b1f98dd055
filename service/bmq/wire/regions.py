"""Boxes made half-open: the one place where other bounds than `[)` exist.

Behind it a region is [lo, hi) in every dimension, with -inf and inf for "unbounded".
"""

import math
from collections.abc import Mapping, Sequence

from bmq.errors import ControlCode, ControlError
from bmq.records import Feed
from bmq.wire.definitions import Bounds, nearest, shorten


def half_open_box(
    box: Mapping[str, Sequence[float | None]], bounds: Bounds, feed: Feed
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return (lo, hi), one number a dimension of the feed, such that the region is [lo, hi).

    Parameters
    ----------
    box : dimension -> [lo, hi]; None: unbounded; a dimension not named is unbounded.
    bounds : which of the two borders belong to the region.

    Raises
    ------
    ControlError
        `unknown_dimension`, before any `bad_region`: a border that is not finite, borders in the wrong order,
        or an interval that holds no number.
    """
    for dimension in box:
        if dimension not in feed.dimensions:
            raise ControlError(
                ControlCode.UNKNOWN_DIMENSION,
                f"Feed '{feed.name}' has no dimension {shorten(dimension)}; the nearest it has is "
                f"'{nearest(dimension, feed.dimensions)}'. Rename it.",
            )
    unbounded = (None, None)
    intervals = [_half_open(d, box.get(d, unbounded), bounds) for d in feed.dimensions]
    return tuple(lo for lo, _ in intervals), tuple(hi for _, hi in intervals)


def _half_open(dimension: str, interval: Sequence[float | None], bounds: Bounds) -> tuple[float, float]:
    lo, hi = interval
    for border in (lo, hi):
        if border is not None and not math.isfinite(border):
            raise ControlError(
                ControlCode.BAD_REGION,
                f"A border of '{dimension}' is beyond the range of a 64-bit float, but borders are finite. "
                "Write null where the region is unbounded.",
            )
    if lo is not None and hi is not None and lo > hi:
        raise ControlError(
            ControlCode.BAD_REGION,
            f"Lower border {lo} of '{dimension}' is above upper border {hi}. Swap the two borders.",
        )
    # The next number up: nothing lies between it and the border, so > lo is >= next(lo), <= hi is < next(hi).
    lower = -math.inf if lo is None else math.nextafter(lo, math.inf) if bounds[0] == "(" else lo
    upper = math.inf if hi is None else math.nextafter(hi, math.inf) if bounds[1] == "]" else hi
    if lower >= upper:
        raise ControlError(
            ControlCode.BAD_REGION,
            f"No number of '{dimension}' lies between {lo} and {hi} with bounds {bounds}. "
            'Widen the interval, or use "bounds": "[]" for a single point.',
        )
    return lower, upper
