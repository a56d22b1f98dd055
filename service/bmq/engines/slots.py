"""Slots that come many times, as numbers of the distinct ones."""

import numpy as np

from bmq.records import Int32s

MANY = 16  # slots of a table for each one asked about, from which sorting them is quicker than marking the table


def numbered(slots: Int32s, n_slots: int) -> tuple[Int32s, Int32s]:
    """Return the distinct slots, ascending, and for each of ``slots`` which of these it is, int32[n].

    Parameters
    ----------
    n_slots : all slots are below.

    Notes
    -----
    O(n + n_slots) where many are asked about, else O(n log n).
    """
    if n_slots > MANY * slots.size:
        distinct, numbers = np.unique(slots, return_inverse=True)
        return distinct.astype(np.int32), numbers.astype(np.int32)
    is_there = np.zeros(n_slots, dtype=np.bool_)
    is_there[slots] = True
    found = np.flatnonzero(is_there).astype(np.int32)
    number_of = np.empty(n_slots, dtype=np.int32)
    number_of[found] = np.arange(found.size, dtype=np.int32)
    return found, number_of[slots]
