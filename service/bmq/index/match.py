"""Which match index the regions of match queries get.

One dimension: logarithmic construct intervals; two: virtual construct rectangles (Wu, Chen, Yu); more, for which the
report has no constructs: corner points (`select`).
"""

from bmq.index.select import SelectIndex
from bmq.index.vci import LciIndex
from bmq.index.vcr import VcrIndex

Matches = LciIndex | VcrIndex | SelectIndex


def make_match(n_dims: int) -> Matches:
    """Return an empty `MatchIndex` for values of ``n_dims`` dimensions."""
    if n_dims == 1:
        return LciIndex()
    return VcrIndex() if n_dims == 2 else SelectIndex(n_dims)
