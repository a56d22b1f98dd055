"""The match indexes of one dimension: simple and logarithmic construct intervals.

Source: Wu, Chen, Yu, Indexing Continual Range Queries for Efficient Stream Processing, section 2.
"""

from bmq.index.construct_lists import VirtualConstructIndex
from bmq.index.virtual_grid import doubling_lengths, simple_lengths


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
