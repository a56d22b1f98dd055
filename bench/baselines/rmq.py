"""What a DiffRMQ asks of a range query index (the papers' RMQ-Index): which regions hold a value.

An RMQ index is static and stateless: built once over all regions, then searched with one value at a time. It
has two halves, since a kernel cannot call methods: a class that builds numpy arrays, and beside it a compiled
function `collect` that searches them.
"""

from collections.abc import Callable
from typing import Any, Protocol

from bmq.records import Float64s, Int32s

# collect(arrays, values, i, out, n_out) -> n_out: write the rows of the regions that hold values[:, i] to
# out[n_out:], each once and in any order, and return how much of `out` is used then. `arrays` is the index's
# NamedTuple, `values` float64[d, n] and finite, `out` an int32[] with room for all rows behind n_out. Compiled
# by numba, without exceptions.
Collect = Callable[[Any, Float64s, int, Int32s, int], int]


class RmqIndex(Protocol):
    """A structure over the half-open regions [lo, hi), made of float64[d, m] ``lo`` and ``hi``."""

    @property
    def arrays(self) -> tuple[Any, ...]:
        """What ``collect`` searches: a NamedTuple of numpy arrays and numbers."""

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays; a row number counts 4."""


MakeRmq = Callable[[Float64s, Float64s], RmqIndex]


def nbytes_of(arrays: tuple[Any, ...]) -> int:
    """Return the bytes of the numpy arrays among ``arrays``."""
    return sum(int(getattr(array, "nbytes", 0)) for array in arrays)
