"""The array types that every layer names, and the notes by which a record says more about its columns.

An annotation declares a column once: its dtype is that of the array type, and a note says what the dtype does not.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class RowsOf:
    """Note on a column: its numbers are rows of the tuple in the field ``table`` of the same record."""

    table: str


@dataclass(frozen=True, slots=True)
class Absent:
    """Note on an optional column: None means that each row holds ``number``."""

    number: int


@dataclass(frozen=True, slots=True)
class ByDimension:
    """Note on a column: it is [d, n], one row a dimension. A column without this note is [n]."""


Bytes = npt.NDArray[np.uint8]
Int8s = npt.NDArray[np.int8]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
UInt64s = npt.NDArray[np.uint64]
Float64s = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Values = Annotated[Float64s, ByDimension()]

NEVER = -(2**63)  # an int64 time that stands for "there was none"
