"""The grid on which virtual constructs lie: the attribute range of each dimension, its unit, and the longest side.

Knows how a grid is chosen from regions and why. `kernels.match.virtual_constructs` defines what constructs are; this
module must not know how their lists are searched.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bmq.kernels.match.virtual_constructs import Axis, CellRanges, cell_ranges, count_cut
from bmq.records import Float64s, Int64s

# How many units the mean side has, rounded up to a power of two. With 2, a seventh more candidates were looked at,
# because a query is expanded by one unit on average; 8 took twice the memory and was not faster.
UNITS_PER_SIDE = 4
# Lists, including empty ones, for each query; 4 bytes each. In the plane this limit decides if queries are small in a
# large range. Half as many lists made units twice as long and two thirds more candidates.
CONSTRUCTS_PER_QUERY = 32
# Entries of 4 bytes for each query. Regions of similar size make 1 to 5. A few regions that are much longer than the
# longest construct could make any number, so units are doubled until the limit holds.
ENTRIES_PER_QUERY = 16


@dataclass(frozen=True, slots=True)
class VirtualGrid:
    """The grid to which query regions are expanded.

    Attributes
    ----------
    axes : the attribute range of each dimension.
    longest : the longest side of a construct, in units; the paper's L.

    Raises
    ------
    ValueError
        The origin or the unit of an axis is not finite, its unit is not positive, or it has no unit; or ``longest`` is
        below 1.
    """

    axes: tuple[Axis, ...]
    longest: int

    def __post_init__(self) -> None:
        for axis in self.axes:
            if not (np.isfinite(axis.origin) and np.isfinite(axis.unit) and axis.unit > 0 and axis.n_units >= 1):
                raise ValueError(f"{axis} is no attribute range: give a finite origin, unit > 0, and n_units >= 1.")
        if self.longest < 1:
            raise ValueError(f"the longest side of a construct is {self.longest} units: give 1 or more.")


def simple_lengths(longest: int) -> Int64s:
    """Return the lengths of SCI (section 2.2): 1, 2, 3, ..., ``longest``; int64[], in units."""
    return np.arange(1, longest + 1, dtype=np.int64)


def doubling_lengths(longest: int) -> Int64s:
    """Return the lengths of VCR (section 3.2; section 2.2 for LCI): 1, 2, 4, ..., ``longest``; int64[], in units.

    Raises
    ------
    ValueError
        ``longest`` is not a power of two.
    """
    if longest < 1 or longest & (longest - 1):
        raise ValueError(f"the longest side of a construct is {longest} units: give a power of two.")
    return np.int64(1) << np.arange(longest.bit_length(), dtype=np.int64)


def choose_grid(
    regions: Float64s, lengths: Int64s, count_pieces: Callable[[CellRanges, Int64s], Int64s] = count_cut
) -> VirtualGrid:
    """Return a grid on which the regions need O(m) constructs and O(m) entries; O(m) for each doubling of units.

    The range of an axis is that of the finite ends. A unit is a power of two, so borders that are multiples of it, as
    integers mostly are, lie on the grid and need no final check.

    Parameters
    ----------
    regions : float64[m, d, 2], m >= 1
    lengths : int64[], the lengths of a construct's sides, in units.
    count_pieces : how many pieces of ``lengths`` each range of cells is cut into.
    """
    n_rows, n_dims = regions.shape[:2]
    n_shapes = lengths.size**n_dims
    most_cells = max(1.0, CONSTRUCTS_PER_QUERY * n_rows / n_shapes) ** (1 / n_dims)
    axes = [_axis_over(regions[:, k], most_cells) for k in range(n_dims)]
    while any(axis.n_units > 1 for axis in axes):
        counts = np.ones(n_rows, dtype=np.int64)
        for k, axis in enumerate(axes):
            counts *= count_pieces(cell_ranges(axis, regions[:, k]), lengths)
        if counts.sum() <= ENTRIES_PER_QUERY * n_rows:
            break
        axes = [_twice_as_coarse(axis) for axis in axes]
    return VirtualGrid(tuple(axes), int(lengths[-1]))


def _axis_over(intervals: Float64s, most_cells: float) -> Axis:
    """Return the range of the finite ends of float64[m, 2] intervals, in at most ``most_cells + 1`` units."""
    ends = intervals[np.isfinite(intervals)]
    if not ends.size:
        return Axis(0.0, 1.0, 1)
    low, high = float(ends.min()), float(ends.max())
    bounded = intervals[np.isfinite(intervals).all(axis=1)]
    # Halved before the subtraction and divided before the sum: else the distance of the largest floats is infinite.
    half_range = high / 2 - low / 2
    half_side = float(((bounded[:, 1] / 2 - bounded[:, 0] / 2) / len(bounded)).sum()) if len(bounded) else half_range
    # frexp: 2**e is the next power of two above, and 2**(e - 1) is the one at or below.
    side_exponent = int(np.frexp(half_side / UNITS_PER_SIDE)[1]) - 1
    range_exponent = int(np.frexp(half_range / most_cells)[1])
    unit = 2.0 ** (1 + min(max(side_exponent, range_exponent, -1022), 1022))
    origin = float(np.floor(low / unit)) * unit
    if not (np.isfinite(origin) and origin <= low):
        origin = low
    n_units = np.ceil((high / 2 - origin / 2) / (unit / 2))
    return Axis(origin, unit, int(max(n_units, 1.0)))


def _twice_as_coarse(axis: Axis) -> Axis:
    """Return the same range in units twice as long."""
    return Axis(axis.origin, min(2 * axis.unit, 2.0**1023), max(1, (axis.n_units + 1) // 2))
