"""The public `BandJoin`: the structure of band joins alone, with numbers for queries and streams.

`engines.band.band_join` has the algorithm; this module checks what comes from outside.
"""

from typing import Any

import numpy as np

from bmq.engines.band.band_join import BandJoin as Bands
from bmq.engines.band.band_join import BandPairs as BandPairs
from bmq.engines.band.band_join import PairChanges as PairChanges
from bmq.library import compiling as compiling  # says when kernels are compiled
from bmq.library.bare_indexes import Numbers, numbers_of
from bmq.records import Float64s, Int32s


class BandJoin:
    """Finds the pairs of streams that come within a band of each other, ``lo <= left - right <= hi``, or leave it.

    Examples
    --------
    >>> import bmq
    >>> join = bmq.BandJoin()
    >>> join.register([0], lo=[-1.0], hi=[1.0])
    >>> _ = join.move(["left"], [0], [10.0])
    >>> changes = join.move(["right", "right"], [5, 5], [10.5, 20.0])
    >>> list(zip(changes.rows.tolist(), changes.others.tolist(), changes.signs.tolist()))
    [(0, 0, 1), (1, 0, -1)]
    """

    def __init__(self) -> None:
        self._bands = Bands()
        self._registered: set[int] = set()

    def __len__(self) -> int:
        return len(self._registered)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays of the structure."""
        return self._bands.nbytes

    def register(self, queries: Numbers, lo: Numbers, hi: Numbers) -> None:
        """Add queries with bands [lo, hi], both ends closed.

        Parameters
        ----------
        queries : int[m]
            Numbers of the queries, from 0, not registered yet. Memory grows with the largest number.
        lo, hi : float[m]
            ``lo <= hi``; an end of -inf or inf is unbounded.

        Raises
        ------
        ValueError
            A number is registered already or comes twice, or a band is empty.
        """
        numbers = self._distinct(queries)
        known = [number for number in numbers.tolist() if number in self._registered]
        if known:
            raise ValueError(f"query {known[0]} is registered already. Deregister it first.")
        lower, upper = (_floats(name, ends, numbers.size) for name, ends in (("lo", lo), ("hi", hi)))
        wrong = ~((lower <= upper) & (lower < np.inf) & (upper > -np.inf))
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            raise ValueError(
                f"the band of query {numbers[row]} is [{lower[row]}, {upper[row]}], but its lower end is at most its "
                "upper end, and it holds a number. Swap the ends."
            )
        self._bands.put(numbers, lower, upper)
        self._registered.update(numbers.tolist())

    def deregister(self, queries: Numbers) -> None:
        """Remove queries, without a word about their pairs.

        Raises
        ------
        ValueError
            A number is not registered, or comes twice.
        """
        numbers = self._distinct(queries)
        self._known(numbers)
        self._bands.remove(numbers)
        self._registered.difference_update(numbers.tolist())

    def move(self, sides: Any, streams: Numbers, values: Numbers, keys: Numbers | None = None) -> PairChanges:
        """Set the values of streams, in the given order; return the pairs that come in band or leave it.

        Parameters
        ----------
        sides : sequence of "left" or "right", [n]
        streams : int[n]
            Numbers of the streams of that side, from 0.
        values : float[n]
            Finite; NaN: the stream has no value any more.
        keys : int[n], optional
            From 0; streams are a pair only if their keys are equal. None: all are equal.

        Returns
        -------
        PairChanges
            ``rows`` (the number of the change, ascending), ``queries``, ``others`` (the stream of the other side) and
            ``signs`` (+1 the pair is in band now, -1 it is not any more); and ``visits``.
        """
        numbers = numbers_of("streams", streams)
        n = numbers.size
        names = np.asarray(sides, dtype=object)
        wrong = [name for name in names.ravel() if name not in ("left", "right")]
        if wrong or names.shape != (n,):
            shown = f"holds {wrong[0]!r}" if wrong else f"has the shape {names.shape}"
            raise ValueError(f'sides {shown}, but it is "left" or "right" for each of the {n} streams. Correct it.')
        numeric = _floats("values", values, n)
        if np.isinf(numeric).any():
            raise ValueError(f"values holds {numeric[np.isinf(numeric)][0]}, but a value is finite or NaN. Correct it.")
        alike = np.zeros(n, dtype=np.int64) if keys is None else numbers_of("keys", keys).astype(np.int64)
        if alike.size != n:
            raise ValueError(f"keys has {alike.size} elements, but there are {n} streams. Give one a stream.")
        return self._bands.change((names == "right").astype(np.int8), numbers, numeric, alike)

    def pairs(self, queries: Numbers) -> BandPairs:
        """Return the pairs of some queries that are in band now: ``queries``, ``left`` and ``right``, in any order.

        Raises
        ------
        ValueError
            A number is not registered, or comes twice.
        """
        numbers = self._distinct(queries)
        self._known(numbers)
        return self._bands.pairs(numbers)

    def _distinct(self, queries: Numbers) -> Int32s:
        numbers = numbers_of("queries", queries)
        if np.unique(numbers).size < numbers.size:
            found, counts = np.unique(numbers, return_counts=True)
            raise ValueError(f"query {found[counts > 1][0]} comes twice in one call. Name it once.")
        return numbers

    def _known(self, numbers: Int32s) -> None:
        unknown = [number for number in numbers.tolist() if number not in self._registered]
        if unknown:
            raise ValueError(f"query {unknown[0]} is not registered. Register it first.")


def _floats(name: str, values: Numbers, n: int) -> Float64s:
    array = np.ascontiguousarray(values, dtype=np.float64)
    if array.shape != (n,):
        raise ValueError(
            f"{name} has the shape {array.shape}, but {n} numbers in one dimension are needed. Reshape it."
        )
    return array
