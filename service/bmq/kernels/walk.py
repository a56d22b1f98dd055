"""Walks along the RS list of one dimension to the RS node of a value. Pure: arrays in, numbers out.

    borders            10        20        30
              ----------|---------|---------|----------
    RS node       0          1         2         3

A reading on a border belongs to the upper RS node. The picture of the delta query sets is in `rs_list`.
"""

from numba import njit

from bmq.records import Float64s


@njit(cache=True)
def find_rs_node(borders: Float64s, value: float, hint: int) -> int:
    """Return the RS node that holds ``value``, searching outward from ``hint``.

    Readings of one stream lie close together, so the search from the RS node it was last in costs
    O(log of the nodes between). A hint that a rebuilt list made worthless costs no more than a binary search.

    Parameters
    ----------
    borders : float64[n_borders]
        Ascending and finite.
    value : float
        Never NaN: NaN compares false with every border, so the search would stay near ``hint`` and hide the
        crossing.
    hint : int
        RS node to begin at; any number from 0.

    Returns
    -------
    int
        RS node, 0..n_borders inclusive.

    Notes
    -----
    Raises nothing; ``wire`` refuses values that are not finite.

    Source: Lee et al., BMQ-Index, MDM 2006, section 3.3. Departure: steps double while the value is further
    on. The paper visits the nodes one by one; here the delta query sets between two nodes are one range, and
    the nodes between need no visit.
    """
    low = min(hint, borders.size)
    high = low
    step = 1
    # >= and not >: a reading on a border belongs to the upper segment.
    while high < borders.size and value >= borders[high]:
        low = high + 1
        high = min(high + step, borders.size)
        step *= 2
    while low > 0 and value < borders[low - 1]:
        high = low - 1
        low = max(low - step, 0)
        step *= 2
    # The RS node is in low..high: borders[low - 1] <= value < borders[high].
    while low < high:
        middle = (low + high) // 2
        if value >= borders[middle]:
            low = middle + 1
        else:
            high = middle
    return low
