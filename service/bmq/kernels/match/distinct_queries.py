"""Finds the queries to which found parts belong: each query once a row.

    row        0  0  0  1  1
    part       2  3  9  3  8
    its query  A  A  B  A  B     ──►  (0, A)  (0, B)  (1, A)  (1, B)

Pure: arrays in, arrays out. Knows numbers of rows, parts and owners. It must not know regions or values.
"""

import numpy as np
from numba import njit

from bmq.records import Int32s


@njit(cache=True)
def find_owners(rows: Int32s, parts: Int32s, owners: Int32s, n_owners: int) -> tuple[Int32s, Int32s]:
    """Return the distinct (row, owner) of the parts that were found. Raises nothing; O(k + n_owners).

    Parameters
    ----------
    rows : int32[k], ascending.
    parts : int32[k], the part that was found in that row.
    owners : int32[], the owner of each part, 0..``n_owners`` - 1.
    n_owners : int

    Returns
    -------
    rows, owners : int32[n], rows ascending.
    """
    last_rows = np.full(n_owners, -1, dtype=np.int32)
    owned_rows = np.empty(rows.size, dtype=np.int32)
    found = np.empty(rows.size, dtype=np.int32)
    n = 0
    for i in range(rows.size):
        owner = owners[parts[i]]
        if last_rows[owner] != rows[i]:
            last_rows[owner] = rows[i]
            owned_rows[n] = rows[i]
            found[n] = owner
            n += 1
    return owned_rows[:n], found[:n]
