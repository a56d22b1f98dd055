"""Columns of a table as numpy arrays over the same memory, in the form that the kernels are compiled for.

Arrow's memory is read-only for numpy, and numba compiles a kernel again for each mixture of read-only and writable
arrays. So an array here says that it is writable. SAFETY: no kernel and no engine writes to a column of readings; they
copy what they keep. `tests/property/test_library_vs_oracle.py` compares the tables before and after.
"""

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bmq.records import Float64s, Int64s

T = TypeVar("T", bound=np.generic)


class _Memory:
    """The memory of an array, described as writable; keeps its owner alive."""

    def __init__(self, array: npt.NDArray[Any]) -> None:
        self.owner = array
        address, _ = array.__array_interface__["data"]
        self.__array_interface__ = array.__array_interface__ | {"data": (address, False)}


def as_writable(array: npt.NDArray[T]) -> npt.NDArray[T]:
    """Return a view of an array that says it is writable; nobody may write to it."""
    if array.flags.writeable and array.flags.c_contiguous and array.flags.aligned:
        return array
    if not (array.flags.c_contiguous and array.flags.aligned and array.size):
        return array.copy()
    view: npt.NDArray[T] = np.asarray(_Memory(array))
    return view


def one_array(column: pa.ChunkedArray) -> pa.Array:
    """Return a column as one array: itself if it has one chunk, otherwise a copy."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def floats_of(column: pa.Array) -> Float64s:
    """Return a numeric column as float64[n], a view if it has this type; the content of a null is undefined."""
    if column.null_count:
        column = column.fill_null(0)
    return as_writable(column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False))


def ints_of(column: pa.Array) -> Int64s:
    """Return an integer column as int64[n], a view if it has this type; the content of a null is undefined."""
    if column.null_count:
        column = column.fill_null(0)
    return as_writable(column.cast(pa.int64()).to_numpy(zero_copy_only=False))
