"""The array types that every layer names."""

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Int8s = npt.NDArray[np.int8]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
UInt64s = npt.NDArray[np.uint64]
Float64s = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

NEVER = -(2**63)  # an int64 time that stands for "there was none"
