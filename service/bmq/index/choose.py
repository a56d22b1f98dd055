"""Which border index a feed gets."""

from bmq.index.adaptive import Adaptive
from bmq.index.layered import Layered
from bmq.index.structures import OneKind
from bmq.records import IndexKind


def make_index(n_dims: int, kind: IndexKind = IndexKind.AUTO) -> Layered:
    """Return an empty border index for values of ``n_dims`` dimensions; ``kind`` has to fit them.

    Whatever the kind, the answers are the same: `auto` changes what they cost.
    """
    return Adaptive(n_dims) if kind is IndexKind.AUTO else OneKind(n_dims, kind)
