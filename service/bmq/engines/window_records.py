"""What a window join is asked with, and what it answers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from bmq.records import Bools, Float64s, Int32s, Int64s, Where

# Asked with a side, a condition and codes of attributes, tells which of the codes it fits.
Fits = Callable[[int, Where, Int32s], Bools]


@dataclass(frozen=True, slots=True)
class Window:
    """Readings of one side that may be joined, in the order in which they were applied.

    Attributes
    ----------
    columns : float64[c, n], the feed's dimensions, then its attributes as numbers; -inf: no number.
    event_times : int64[n], epoch ms.
    codes : int32[n], of the attributes; zeros where the feed has none.
    keys : field -> int64[n], equal numbers for equal texts; -1: equal to nothing. For each field that is compared.
    first : the number of row 0 among all readings that were ever applied of the feed; the others follow.
    positions : int64[n], ascending, where each stands in the merged sequence of both feeds; negative: before this
        batch.
    own : bool[n], whether it may be part of a pair here.
    """

    columns: Float64s
    event_times: Int64s
    codes: Int32s
    keys: Mapping[str, Int64s]
    first: int
    positions: Int64s
    own: Bools

    def __len__(self) -> int:
        return self.positions.size


@dataclass(frozen=True, slots=True)
class WindowPairs:
    """Pairs of rows of two windows, and the query that each satisfies; visits: candidates looked at.

    queries, left_rows, right_rows : int32[k], by the position of the later reading, the query's slot, and the position
        of the earlier reading.
    """

    queries: Int32s
    left_rows: Int32s
    right_rows: Int32s
    visits: int
