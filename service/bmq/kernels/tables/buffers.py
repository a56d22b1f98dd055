"""Output arrays that grow inside a kernel, so that events never pass through Python one by one.

A kernel asks for room once for many candidates, then writes without a check and counts only the candidates it keeps.
Pure: arrays in, arrays out. Knows three columns of equal length and must not know what is in them.
"""

import numpy as np
from numba import njit

from bmq.records import Int8s, Int32s


@njit(cache=True)
def make_room(rows: Int32s, queries: Int32s, signs: Int8s, n_found: int, n_more: int) -> tuple[Int32s, Int32s, Int8s]:
    """Return the three arrays, or longer copies of them, with room for ``n_more`` entries behind ``n_found``.

    Parameters
    ----------
    rows, queries, signs : int32[capacity], int32[capacity], int8[capacity]
    n_found : int
        How many entries are used.
    n_more : int
        How many entries the caller may write next.

    Returns
    -------
    int32[], int32[], int8[]
        The same arrays if they are long enough. Else copies of at least twice the length, so that n events cost O(n)
        copies of an entry.

    Notes
    -----
    Raises nothing.
    """
    n_needed = n_found + n_more
    if n_needed <= rows.size:
        return rows, queries, signs
    capacity = max(n_needed, 2 * rows.size)
    longer_rows = np.empty(capacity, dtype=np.int32)
    longer_queries = np.empty(capacity, dtype=np.int32)
    longer_signs = np.empty(capacity, dtype=np.int8)
    longer_rows[:n_found] = rows[:n_found]
    longer_queries[:n_found] = queries[:n_found]
    longer_signs[:n_found] = signs[:n_found]
    return longer_rows, longer_queries, longer_signs
