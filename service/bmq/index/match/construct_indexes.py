"""The match indexes of virtual constructs: intervals of one dimension (SCI, LCI) and rectangles of the plane (VCR).

Source: Wu, Chen, Yu, Indexing Continual Range Queries for Efficient Stream Processing, sections 2 and 3.
"""

from bmq.index.match.construct_lists import VirtualConstructIndex
from bmq.index.match.virtual_grid import doubling_lengths, simple_lengths


class SciIndex(VirtualConstructIndex):
    """The `MatchIndex` of simple construct intervals: at each unit one of each length 1, 2, 3, ..., L.

    A query of w units is w / L + 1 entries at most. Parameters as for `VirtualConstructIndex`.
    """

    _n_dims = 1
    _lengths_up_to = staticmethod(simple_lengths)
    # The mean query is 4 to 8 units long there. 8 and 16 were slower, by a tenth and by a third, as a value has a run
    # of lists for each length.
    _longest_of_chosen_grid = 4


class LciIndex(VirtualConstructIndex):
    """The `MatchIndex` of logarithmic construct intervals: at each unit one of each length 1, 2, 4, ..., L = 2^k.

    A query of w units is w / L + k entries at most. Parameters as for `VirtualConstructIndex`.

    Raises
    ------
    ValueError
        L is no power of two.
    """

    _n_dims = 1
    _lengths_up_to = staticmethod(doubling_lengths)
    _longest_of_chosen_grid = 8  # 4 and 16 were as fast


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
