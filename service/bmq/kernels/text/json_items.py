"""Finds the items of JSON lists. Pure: bytes in, positions out.

    [{"x": 1}, {"x": 2} ]
     ^^^^^^^^  ^^^^^^^^

Knows the lists and must not know what is in them.
"""

import numpy as np
from numba import njit

from bmq.kernels.text.json_skip import COMMA, skip_spaces, skip_value
from bmq.records import Bytes, Int64s

_CLOSE_LIST = 93


@njit(cache=True)
def find_items(begins: Int64s, ends: Int64s, data: Bytes) -> tuple[Int64s, Int64s, Int64s]:
    """Return where the items of lists are, as (starts, item begins, item ends).

    Parameters
    ----------
    begins, ends : int64[m]
        List i is ``data[begins[i]:ends[i]]``, from its bracket to its bracket. The caller has checked that it is JSON.
    data : uint8[]

    Returns
    -------
    int64[m + 1], int64[k], int64[k]
        The items of list i are those from ``starts[i]`` to ``starts[i + 1]``; item j is
        ``data[item_begins[j]:item_ends[j]]``.

    Notes
    -----
    Raises nothing. One pass over the bytes. A list that is no JSON ends at its fault.
    """
    starts = np.zeros(begins.size + 1, dtype=np.int64)
    item_begins = np.empty(max(16, 4 * begins.size), dtype=np.int64)
    item_ends = np.empty(item_begins.size, dtype=np.int64)
    n = 0
    for i in range(begins.size):
        at, end = skip_spaces(data, begins[i] + 1, ends[i]), ends[i]
        while at < end and data[at] != _CLOSE_LIST:
            begin = at
            at, _, _ = skip_value(data, at, end)
            if at < 0:
                break
            if n == item_begins.size:
                item_begins = np.concatenate((item_begins, np.empty(n, dtype=np.int64)))
                item_ends = np.concatenate((item_ends, np.empty(n, dtype=np.int64)))
            item_begins[n], item_ends[n] = begin, at
            n += 1
            at = skip_spaces(data, at, end)
            if at < end and data[at] == COMMA:
                at = skip_spaces(data, at + 1, end)
        starts[i + 1] = n
    return starts, item_begins[:n], item_ends[:n]
