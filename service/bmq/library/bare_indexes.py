"""The public `BorderIndex` and `MatchIndex`: the structures alone, with numbers for queries and streams.

    values      float64, one row a value: [n, d], or [n] in one dimension
    regions     lower and upper borders like values; half-open, [lo, hi)

The engine's own indexes have one column a value, check nothing twice, and change with the engine. These check what
they get, and stay.
"""

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from bmq.index.base import Moves as Moves
from bmq.index.border.adaptive_border import make_index
from bmq.index.layered import Layered
from bmq.index.match.adaptive_match import AdaptiveMatches, make_match
from bmq.library import compiling as compiling  # says when kernels are compiled
from bmq.records import Float64s, IndexKind, Int32s

Numbers = npt.ArrayLike
Structure = Literal["auto", "region_segments", "border_grid", "nd_bmq", "stab_difference", "scan"]

MOST_DIMS = 64  # far above what any structure is good for; more is a transposed array
# Each number below the largest takes some bytes, used or not.
LARGEST_NUMBER = 2**31 - 2


class _Queries:
    """Queries with regions, in one of the two indexes."""

    def __init__(self, n_dims: int, index: Layered | AdaptiveMatches) -> None:
        self._n_dims = n_dims
        self._index = index

    def __len__(self) -> int:
        return len(self._index)

    @property
    def n_dims(self) -> int:
        """The number of dimensions of values and regions."""
        return self._n_dims

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays of the structure, of the parts that are built so far."""
        return self._index.nbytes

    def register(self, queries: Numbers, lo: Numbers, hi: Numbers) -> None:
        """Add queries with regions [lo, hi).

        Parameters
        ----------
        queries : int[m]
            Numbers of the queries, from 0, not registered yet. Memory grows with the largest number.
        lo, hi : float[m, d], or float[m] in one dimension
            ``lo < hi``; -inf and inf are allowed: the region is unbounded there.

        Raises
        ------
        ValueError
            A number is negative, registered already or comes twice, or a lower border is not below the upper one.
        """
        numbers = numbers_of("queries", queries)
        lower, upper = (self._columns(name, ends, numbers.size) for name, ends in (("lo", lo), ("hi", hi)))
        self._index.register(numbers, lower, upper)

    def deregister(self, queries: Numbers) -> None:
        """Remove queries.

        Parameters
        ----------
        queries : int[m]

        Raises
        ------
        ValueError
            A number is not registered, or comes twice.
        """
        self._index.deregister(numbers_of("queries", queries))

    def stab(self, values: Numbers) -> Moves:
        """Return the queries that hold each value, with sign +1.

        Parameters
        ----------
        values : float[n, d], or float[n] in one dimension; finite.
        """
        return self._index.stab(self._finite("values", values, None))

    def _finite(self, name: str, values: Numbers, n: int | None) -> Float64s:
        columns = self._columns(name, values, n)
        if not np.isfinite(columns).all():
            row = int(np.flatnonzero(~np.isfinite(columns).all(axis=0))[0])
            raise ValueError(f"{name}[{row}] is {columns[:, row]}, but a value is finite. Leave it out.")
        return columns

    def _columns(self, name: str, values: Numbers, n: int | None) -> Float64s:
        """Return values as the indexes have them: float64[d, n], C-contiguous."""
        rows = np.asarray(values, dtype=np.float64)
        if rows.ndim == 1 and self._n_dims == 1:
            rows = rows[:, np.newaxis]
        if rows.shape[1:] != (self._n_dims,) or (n is not None and rows.shape[0] != n):
            wanted = f"({'n' if n is None else n}, {self._n_dims})"
            raise ValueError(f"{name} has the shape {rows.shape}, but one row a value is needed: {wanted}. Reshape it.")
        return np.ascontiguousarray(rows.T)


class BorderIndex(_Queries):
    """Finds the queries whose border a move crosses: the paper's index, and its kin for more dimensions.

    Parameters
    ----------
    n_dims : int
        The number of dimensions.
    structure : str
        "auto" chooses by the queries and the moves, and again as they change. The others are for measurements; no
        answer depends on it.

    Examples
    --------
    >>> import bmq
    >>> index = bmq.BorderIndex(1)
    >>> index.register([0, 1], lo=[10.0, 20.0], hi=[20.0, 30.0])
    >>> moves = index.move([5.0, 15.0, 15.0], [15.0, 25.0, 16.0])
    >>> sorted(zip(moves.rows.tolist(), moves.queries.tolist(), moves.signs.tolist()))
    [(0, 0, 1), (1, 0, -1), (1, 1, 1)]
    """

    def __init__(self, n_dims: int, structure: Structure = "auto") -> None:
        kind = _kind_of(structure, _checked_dims(n_dims))
        index = make_index(n_dims, kind)
        super().__init__(n_dims, index)
        self._borders = index

    def move(self, previous: Numbers, current: Numbers, streams: Numbers | None = None) -> Moves:
        """Return the queries that hold exactly one end of each move.

        Parameters
        ----------
        previous, current : float[n, d], or float[n] in one dimension; finite
            Where each move begins and ends.
        streams : int[n], optional
            The stream of each move, from 0; several moves of one stream are in order. The index keeps a position for
            each, from which the next search begins. None: all are one stream, which costs time at most.

        Returns
        -------
        Moves
            ``rows`` (the number of the move, ascending), ``queries`` and ``signs`` (+1 entered, -1 left), one element a
            crossing; and ``visits``, how many candidates were looked at.
        """
        before = self._finite("previous", previous, None)
        n = before.shape[1]
        after = self._finite("current", current, n)
        numbers = np.zeros(n, dtype=np.int32) if streams is None else numbers_of("streams", streams)
        if numbers.size != n:
            raise ValueError(f"streams has {numbers.size} elements, but there are {n} moves. Give one a move.")
        return self._borders.moves(numbers, before, after)


class MatchIndex(_Queries):
    """Finds the queries that hold a value: `match` queries, and what is inside now.

    Parameters
    ----------
    n_dims : int
        The number of dimensions.

    Examples
    --------
    >>> import bmq
    >>> index = bmq.MatchIndex(2)
    >>> index.register([7], lo=[[0.0, 0.0]], hi=[[10.0, 10.0]])
    >>> found = index.stab([[5.0, 5.0], [10.0, 5.0]])
    >>> found.rows.tolist(), found.queries.tolist()
    ([0], [7])
    """

    def __init__(self, n_dims: int) -> None:
        super().__init__(n_dims, make_match(_checked_dims(n_dims)))


def numbers_of(name: str, numbers: Any) -> Int32s:
    """Return numbers of queries or streams as int32[m].

    Raises
    ------
    ValueError
        They are no whole numbers from 0 to `LARGEST_NUMBER` in one dimension.
    """
    array = np.asarray(numbers)
    if not array.size:
        array = array.astype(np.int32)
    if array.ndim != 1 or not np.issubdtype(array.dtype, np.integer):
        raise ValueError(
            f"{name} has the shape {array.shape} and the type {array.dtype}, but whole numbers in one dimension are "
            "needed. Number them from 0."
        )
    wrong = (array < 0) | (array > LARGEST_NUMBER)
    if wrong.any():
        raise ValueError(
            f"{name} holds {array[wrong][0]}, but numbers go from 0 to {LARGEST_NUMBER}, and small ones save memory. "
            "Number them from 0."
        )
    return np.ascontiguousarray(array, dtype=np.int32)


def _checked_dims(n_dims: int) -> int:
    if not 1 <= n_dims <= MOST_DIMS:
        raise ValueError(f"n_dims is {n_dims}, but an index has 1 to {MOST_DIMS} dimensions. Choose one of these.")
    return n_dims


def _kind_of(structure: str, n_dims: int) -> IndexKind:
    fitting = [kind.value for kind in IndexKind if kind.fits(n_dims)]
    if structure not in fitting:
        raise ValueError(
            f"structure is {structure!r}, but with {n_dims} dimensions there are {', '.join(fitting)}. Choose one of "
            "these."
        )
    return IndexKind(structure)
