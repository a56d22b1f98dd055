"""Event time columns to epoch milliseconds, rounded down as the service rounds them."""

import numpy as np
import pyarrow as pa

from bmq.errors import DeadLetterCode, ReadingError
from bmq.library.shared_arrays import as_writable, floats_of, ints_of
from bmq.records import Bools, Int64s, TimeUnit
from bmq.wire.event_times import LAST_EVENT_TIME_MS

_BEYOND = LAST_EVENT_TIME_MS + 1  # what a time becomes that is too large to be multiplied: it is out of range
LARGEST_WHOLE = 2.0**53  # up to here every whole number is a double


def read_times(name: str, column: pa.Array, unit: TimeUnit | None) -> Int64s:
    """Return int64[n]; the content of a null is undefined, and what is beyond all times is out of range.

    Parameters
    ----------
    unit : of a column of numbers; None: milliseconds. A column of timestamps has a unit of its own.

    Raises
    ------
    ReadingError
        The column has neither timestamps nor whole numbers.
    """
    if pa.types.is_null(column.type):
        column = column.cast(pa.int64())
    kind = column.type
    if pa.types.is_timestamp(kind):
        return _in_milliseconds(ints_of(column.cast(pa.int64())), TimeUnit(kind.unit).power)
    if pa.types.is_date(kind):
        return ints_of(column.cast(pa.timestamp("ms")).cast(pa.int64()))
    if pa.types.is_floating(kind):
        numbers, no_numbers = _whole(name, column)
        times = _in_milliseconds(numbers, (unit or TimeUnit.MS).power)
        times[no_numbers] = _BEYOND  # a bad reading, and not a column of the wrong type
        return times
    if pa.types.is_integer(kind):
        column = column.cast(pa.int64(), safe=False) if not pa.types.is_uint64(kind) else _clipped(column)
        return _in_milliseconds(ints_of(column), (unit or TimeUnit.MS).power)
    raise ReadingError(
        DeadLetterCode.WRONG_TYPE,
        f"Column {name!r} is of type {kind}, but an event time is a timestamp or a whole number. Convert the column, "
        "as with pandas.to_datetime.",
    )


def _whole(name: str, column: pa.Array) -> tuple[Int64s, Bools]:
    """Return floats as whole numbers, and which are no number: NaN and infinity.

    Fractions are refused: a double of seconds does not hold the exact time.
    """
    numbers = floats_of(column)
    finite = np.isfinite(numbers)
    wrong = finite & ((np.floor(numbers) != numbers) | (np.abs(numbers) > LARGEST_WHOLE))
    if wrong.any():
        raise ReadingError(
            DeadLetterCode.WRONG_TYPE,
            f"Column {name!r} holds {numbers[wrong][0]!r}, but an event time that is a float is a whole number up to "
            "2^53. Convert the column to timestamps, as with pandas.to_datetime(..., unit='s').",
        )
    return np.where(finite, numbers, 0).astype(np.int64), ~finite


def _clipped(column: pa.Array) -> pa.Array:
    numbers = column.fill_null(0).to_numpy(zero_copy_only=False)
    return pa.array(np.minimum(numbers, np.uint64(np.iinfo(np.int64).max)).astype(np.int64))


def _in_milliseconds(numbers: Int64s, power: int) -> Int64s:
    if power == 0:
        return as_writable(numbers)
    if power < 0:
        rounded: Int64s = np.floor_divide(numbers, 10**-power)
        return rounded
    most = _BEYOND // 10**power
    scaled: Int64s = np.clip(numbers, -most - 1, most + 1) * 10**power
    return scaled
