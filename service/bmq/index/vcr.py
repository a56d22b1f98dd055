"""The match index of the plane: virtual construct rectangles.

Source: Wu, Chen, Yu, Indexing Continual Range Queries for Efficient Stream Processing, section 3.
"""

from bmq.index.construct_lists import VirtualConstructIndex
from bmq.index.virtual_grid import doubling_lengths


class VcrIndex(VirtualConstructIndex):
    """The `MatchIndex` of virtual construct rectangles: at each grid point one of each size 2^i x 2^j up to L x L.

    L is 2^k. Of a query of w times h units, SIMPLE decomposition makes at most (w / L + k)(h / L + k) disjoint
    rectangles; OVERLAPPED ceil(w / l) ceil(h / l') of one size, l x l', of which the last may reach over the ones
    before. Parameters as for `VirtualConstructIndex`.

    Raises
    ------
    ValueError
        L is no power of two.
    """

    _n_dims = 2
    _lengths_up_to = staticmethod(doubling_lengths)
    # The mean side is at most 8 units there. 8, with 60 runs of lists for a value in place of 21, was slower by up to a
    # half, as the runs take longer than the entries.
    _longest_of_chosen_grid = 4
