"""The attribute range cut into units, as CEI and Dlist need it; and which rows it represents exactly.

    origin    origin + unit             origin + n_units * unit
      |-----------|-----------| ... |-----------|
 0          1           2              n_units       n_units + 1      cells

Values may lie anywhere, so the two outer cells reach to infinity.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from bmq.kernels.match.virtual_constructs import Axis
from bmq.records import Bools, Float64s, Int32s, Int64s

MOST_UNITS = 1 << 28  # 4 bytes each at least; more says that the unit does not fit the regions


class Cover(NamedTuple):
    """Which cells each row covers, and which rows must be compared with a value.

    Attributes
    ----------
    first, stop : int64[m], cells ``first <= cell < stop``.
    entries : int32[m], what an ID list says of the row: its number, or ``~number`` if it has an end that is not on
        a grid line (and not infinite). Such a row is listed in every cell that it touches, as the papers do.
    lo, hi : float64[m], or float64[0] where no row must be compared.
    """

    first: Int64s
    stop: Int64s
    entries: Int32s
    lo: Float64s
    hi: Float64s


def line_around(lo: Float64s, hi: Float64s, unit: float = 1.0) -> Axis:
    """Return the line of units from the lowest to the highest finite end.

    Raises
    ------
    ValueError
        They are more than ``MOST_UNITS``.
    """
    ends = np.concatenate((lo.ravel(), hi.ravel()))
    ends = ends[np.isfinite(ends)]
    if not ends.size:
        return Axis(0.0, unit, 1)
    origin = float(np.floor(ends.min() / unit) * unit)
    n_units = float(np.ceil((ends.max() - origin) / unit))
    if not n_units <= MOST_UNITS:
        raise ValueError(f"{n_units:g} units of {unit:g} are more than {MOST_UNITS}: choose a larger unit.")
    return Axis(origin, unit, max(1, int(n_units)))


@njit(cache=True, inline="always")
def begin_of(line: Axis, cell: int) -> float:
    """Return the lower end of a cell from 1 on."""
    return line.origin + (cell - 1) * line.unit


@njit(cache=True)
def cell_of(line: Axis, value: float) -> int:
    """Return the cell that holds ``value``, 0..n_units + 1; raises nothing.

    Exact although the division rounds: the result is compared with the cell's own ends.
    """
    if value < line.origin:
        return 0
    if value >= begin_of(line, line.n_units + 1):
        return line.n_units + 1
    cell = 1 + int((value - line.origin) / line.unit)
    if value < begin_of(line, cell):
        return cell - 1
    if value >= begin_of(line, cell + 1):
        return cell + 1
    return cell


def cover(line: Axis, lo: Float64s, hi: Float64s) -> Cover:
    """Return the cells of the rows [lo, hi), float64[m] each.

    Raises
    ------
    ValueError
        The unit is so small beside the ends of the line that float64 does not tell grid lines apart.
    """
    farthest = max(abs(line.origin), abs(line.origin + line.n_units * line.unit))
    if line.unit < 4 * np.spacing(farthest):
        raise ValueError(f"a unit of {line.unit:g} cannot be distinguished at {farthest:g}: choose a larger unit.")
    first, stop, exact = _cells_covered(line, lo, hi)
    rows = np.arange(lo.size, dtype=np.int32)
    n_kept = 0 if exact.all() else lo.size
    return Cover(first, stop, np.where(exact, rows, ~rows), lo[:n_kept].copy(), hi[:n_kept].copy())


@njit(cache=True)
def _cells_covered(line: Axis, lo: Float64s, hi: Float64s) -> tuple[Int64s, Int64s, Bools]:
    first = np.empty(lo.size, dtype=np.int64)
    stop = np.empty(lo.size, dtype=np.int64)
    exact = np.empty(lo.size, dtype=np.bool_)
    for row in range(lo.size):
        first[row] = cell_of(line, lo[row])
        lo_on_line = lo[row] == -np.inf or (first[row] > 0 and begin_of(line, first[row]) == lo[row])
        last = cell_of(line, hi[row])
        hi_on_line = hi[row] == np.inf or (last > 0 and begin_of(line, last) == hi[row])
        stop[row] = last if hi_on_line and hi[row] != np.inf else last + 1
        exact[row] = lo_on_line and hi_on_line
    return first, stop, exact


@njit(cache=True)
def drop_others(rows: Int32s, first: int, stop: int, lo: Float64s, hi: Float64s, value: float) -> int:
    """Turn ``rows[first:stop]``, entries of ID lists, into the rows that hold ``value``; return where they stop.

    ``lo`` and ``hi`` are those of `Cover`, which are empty where there is nothing to drop. Raises nothing.
    """
    n_kept = first
    for e in range(first, stop):
        entry = rows[e]
        row = entry if entry >= 0 else ~entry
        rows[n_kept] = row
        n_kept += 1 if entry >= 0 or lo[row] <= value < hi[row] else 0
    return n_kept
