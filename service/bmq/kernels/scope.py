"""Queries that watch named streams only: tested per stream, never listed in the border index."""

import numpy as np
from numba import njit

from bmq.records import Bools, Float64s, Int8s, Int32s, Int64s


@njit(cache=True)
def holds(lo: Float64s, hi: Float64s, query: int, values: Float64s, i: int) -> bool:
    """Return whether box ``query``, [lo, hi) in each dimension, holds ``values[:, i]``."""
    for k in range(values.shape[0]):  # noqa: SIM110 - numba has no generators
        if values[k, i] < lo[k, query] or values[k, i] >= hi[k, query]:
            return False
    return True


@njit(cache=True)
def scoped_moves(
    slots: Int32s,
    moved: Bools,
    previous_values: Float64s,
    values: Float64s,
    starts: Int64s,
    queries: Int32s,
    lo: Float64s,
    hi: Float64s,
) -> tuple[Int32s, Int32s, Int8s, int]:
    """Return the crossings of queries that name their streams.

    Parameters
    ----------
    slots, moved, previous_values, values : int32[n], bool[n], float64[d, n], float64[d, n]
        The readings as the stream table chained them; where not ``moved`` the stream was nowhere before.
    starts, queries : int64[n_slots + 1], int32[]
        The queries of stream s are ``queries[starts[s]:starts[s + 1]]``.
    lo, hi : float64[d, n_queries]

    Returns
    -------
    rows, query slots, signs, number of queries tested
        Raises nothing. Cost: the queries that name the readings' streams, twice (count, then fill).
    """
    n_found = 0
    visits = 0
    for fill in range(2):
        if fill == 1:
            rows = np.empty(n_found, dtype=np.int32)
            found = np.empty(n_found, dtype=np.int32)
            signs = np.empty(n_found, dtype=np.int8)
            n_found = 0
        for i in range(slots.size):
            for at in range(starts[slots[i]], starts[slots[i] + 1]):
                query = queries[at]
                visits += 1 - fill
                was = moved[i] and holds(lo, hi, query, previous_values, i)
                now = holds(lo, hi, query, values, i)
                if was != now:
                    if fill == 1:
                        rows[n_found] = i
                        found[n_found] = query
                        signs[n_found] = 1 if now else -1
                    n_found += 1
    return rows, found, signs, visits
