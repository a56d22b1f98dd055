"""The match indexes of virtual constructs: intervals of one dimension (SCI) and rectangles of the plane (VCR).

Source: Wu, Chen, Yu, Indexing Continual Range Queries for Efficient Stream Processing, sections 2 and 3.
"""

from bmq.index.match.construct_lists import VirtualConstructIndex
from bmq.index.match.virtual_grid import doubling_lengths, simple_lengths


class SciIndex(VirtualConstructIndex):
    """The `MatchIndex` of simple construct intervals: at each unit one of each length 1, 2, 3, ..., L.

    A query of w units is w / L + 1 entries at most. Parameters as for `VirtualConstructIndex`.
    """

    _n_dims = 1
    # L = 4: the mean query is 4 to 8 units long. 8 and 16 were slower, by a tenth and by a third, because a value has
    # a run of lists for each length.
    _lengths = simple_lengths(4)


class VcrIndex(VirtualConstructIndex):
    """The `MatchIndex` of virtual construct rectangles: at each grid point one of each size 2^i x 2^j up to L x L.

    L is 2^k. A query of w times h units is cut into at most (w / L + k)(h / L + k) disjoint rectangles. Parameters as
    for `VirtualConstructIndex`.
    """

    _n_dims = 2
    # L = 4: the mean side is at most 8 units. 8, with 60 runs of lists for a value in place of 21, was slower by up to
    # a half, because the runs take longer than the entries.
    _lengths = doubling_lengths(4)
