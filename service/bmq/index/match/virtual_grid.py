"""Where virtual constructs lie: the attribute range of each dimension, its unit, the longest side.

Knows how a grid is chosen from data and why; what constructs are is `kernels.match.virtual_constructs`.
"""

from dataclasses import dataclass

import numpy as np

from bmq.kernels.match.virtual_constructs import Axis, Decomposition, cell_ranges, count_pieces
from bmq.records import Float64s, Int64s

# Units on the mean side, rounded up to a power of two. 2 looked at a seventh more candidates, as a query is expanded by
# a unit on average; 8 took twice the memory and was no faster.
UNITS_PER_SIDE = 4
# Lists, empty ones included, for each query: 4 bytes each. In the plane this decides where queries are small in a large
# range; half as many made units twice as long and two thirds more candidates.
CONSTRUCTS_PER_QUERY = 32
# Entries of 4 bytes for each query. Regions alike in size make 1 to 5; a few that reach over many longest sides would
# make any number, and units are doubled until they do not.
ENTRIES_PER_QUERY = 16


@dataclass(frozen=True, slots=True)
class VirtualGrid:
    """The grid that query regions are expanded to.

    Attributes
    ----------
    axes : the attribute range of each dimension.
    longest : the paper's L, in units.

    Raises
    ------
    ValueError
        A number of an axis is not finite, a unit not positive; no unit; ``longest`` below 1.
    """

    axes: tuple[Axis, ...]
    longest: int

    def __post_init__(self) -> None:
        for axis in self.axes:
            if not (np.isfinite(axis.origin) and np.isfinite(axis.unit) and axis.unit > 0 and axis.n_units >= 1):
                raise ValueError(f"{axis} is no attribute range: give a finite origin, unit > 0, and n_units >= 1.")
        if self.longest < 1:
            raise ValueError(f"the longest side of a construct is {self.longest} units: give 1 or more.")

    @classmethod
    def of_integers(cls, *ranges: int, longest: int) -> "VirtualGrid":
        """Return the paper's grid: attributes 0 .. R - 1 for each R of ``ranges``, unit 1."""
        return cls(tuple(Axis(0.0, 1.0, n_units) for n_units in ranges), longest)


def simple_lengths(longest: int) -> Int64s:
    """Return the lengths of SCI (section 2.2): 1, 2, 3, ..., ``longest``."""
    return np.arange(1, longest + 1, dtype=np.int64)


def doubling_lengths(longest: int) -> Int64s:
    """Return the lengths of LCI and VCR (sections 2.2 and 3.2): 1, 2, 4, ..., ``longest``.

    Raises
    ------
    ValueError
        ``longest`` is no power of two.
    """
    if longest < 1 or longest & (longest - 1):
        raise ValueError(f"the longest side of a construct is {longest} units: give a power of two.")
    return np.int64(1) << np.arange(longest.bit_length(), dtype=np.int64)


def choose_grid(regions: Float64s, lengths: Int64s, decomposition: Decomposition) -> VirtualGrid:
    """Return a grid on which the regions make O(m) constructs and O(m) entries; O(m) for each doubling of units.

    The range is that of the finite ends, and a unit is a power of two: borders that are multiples of one, as
    integers are, lie on the grid, and need no final check.

    Parameters
    ----------
    regions : float64[m, d, 2], m >= 1
    lengths : int64[], of a construct's sides.
    decomposition : of the index.
    """
    n_rows, n_dims = regions.shape[:2]
    n_shapes = lengths.size**n_dims
    most_cells = max(1.0, CONSTRUCTS_PER_QUERY * n_rows / n_shapes) ** (1 / n_dims)
    axes = [_axis_over(regions[:, k], most_cells) for k in range(n_dims)]
    while any(axis.n_units > 1 for axis in axes):
        counts = np.ones(n_rows, dtype=np.int64)
        for k, axis in enumerate(axes):
            counts *= count_pieces(cell_ranges(axis, regions[:, k]), lengths, decomposition)
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
    # Halved before subtracted, divided before summed: the distance of the largest floats is none.
    half_range = high / 2 - low / 2
    half_side = float(((bounded[:, 1] / 2 - bounded[:, 0] / 2) / len(bounded)).sum()) if len(bounded) else half_range
    # frexp: 2**e is the power of two above, 2**(e - 1) the one at or below.
    side_exponent = int(np.frexp(half_side / UNITS_PER_SIDE)[1]) - 1
    range_exponent = int(np.frexp(half_range / most_cells)[1])
    unit = 2.0 ** (1 + min(max(side_exponent, range_exponent, -1022), 1022))
    origin = float(np.floor(low / unit)) * unit
    if not (np.isfinite(origin) and origin <= low):
        origin = low
    n_units = np.ceil((high / 2 - origin / 2) / (unit / 2))
    return Axis(origin, unit, int(max(n_units, 1.0)))


def _twice_as_coarse(axis: Axis) -> Axis:
    return Axis(axis.origin, min(2 * axis.unit, 2.0**1023), max(1, (axis.n_units + 1) // 2))
