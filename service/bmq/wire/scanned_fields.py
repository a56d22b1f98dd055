"""The arrays that a scan of records fills: where the fields of a feed are, and the numbers among them."""

from dataclasses import dataclass

import numpy as np

from bmq.records import Float64s, Int8s, Int64s


@dataclass(frozen=True, slots=True)
class ScannedFields:
    """A row for each field of `feed_fields.scanned_fields`, a column for each record.

    Attributes
    ----------
    kinds : int8[k, n], of `kernels.text.json_skip`; zeros (ABSENT) before a scan.
    begins, ends : int64[k, n], the text of a value is ``data[begins[f, i]:ends[f, i]]``.
    numbers : float64[k, n], valid only for kind NUMBER.
    """

    kinds: Int8s
    begins: Int64s
    ends: Int64s
    numbers: Float64s

    @classmethod
    def empty(cls, n_fields: int, n: int) -> "ScannedFields":
        """Return arrays in which every field is absent."""
        shape = (n_fields, n)
        return cls(np.zeros(shape, np.int8), np.empty(shape, np.int64), np.empty(shape, np.int64), np.empty(shape))
