"""Rows of records of columns: those of several records as one record, and some of one record's.

A record of columns is a dataclass. Its annotations say how each field is treated:

    field                        concat                                     take
    column, [n] or [d, n]        one behind the other                       the rows
    column with `RowsOf`         and shifted by the tables before           the rows
    tuple that has rows          one behind the other                       whole
    optional column              None if all parts have None; `Absent`      the rows, or None
    record                       by its own fields                          by its own fields
    any other                    that of the first part                     as it is

`Ids` and `Attributes` have rules of their own. Knows columns, and not what they mean.
"""

from collections.abc import Callable, Sequence
from itertools import accumulate, chain
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt

from bmq.records.arrays import Bools, Int64s
from bmq.records.attribute_texts import with_each_text_once, with_used_texts
from bmq.records.columns import Attributes, Ids
from bmq.records.record_fields import RecordField, fields_of

Record = TypeVar("Record")
Positions = npt.NDArray[np.signedinteger[Any]]

# Ids that are copied at once. The copy needs the position of each byte, eight bytes long: with more ids at once the
# positions leave the processor's cache, with fewer the steps in Python cost more.
IDS_AT_ONCE = 8192


def concat(parts: Sequence[Record]) -> Record:
    """Return the rows of all parts, in their order; always a copy, even of one part.

    What comes in a frame is read-only, and numba would compile each kernel a second time for it.

    Parameters
    ----------
    parts : at least one. Their fields that are no columns, records or tables are equal, as the name of a feed.
    """
    kind: Any = type(parts[0])
    if kind in _CONCAT:
        whole: Record = _CONCAT[kind](parts)
    else:
        whole = kind(*[_concat_field(field, parts) for field in fields_of(kind)])
    return whole


def as_one(parts: Sequence[Record]) -> Record:
    """Return the rows of all parts, as ``concat``; but a single part itself, and not a copy."""
    return parts[0] if len(parts) == 1 else concat(parts)


def take(record: Record, rows: Bools | Positions | slice) -> Record:
    """Return some rows of a record.

    Parameters
    ----------
    rows : a mask bool[n], or positions in the wanted order: all columns are then copies and C-contiguous.
        A range: the columns are views.
    """
    if not isinstance(rows, slice) and rows.dtype == np.bool_:
        return _take(record, np.flatnonzero(rows))  # once for all columns
    return _take(record, cast("Positions | slice", rows))


def _concat_field(field: RecordField, parts: Sequence[Any]) -> Any:
    found = [getattr(part, field.name) for part in parts]
    if field.is_table:
        return tuple(chain.from_iterable(found))
    if field.dtype is None and not field.is_record:
        return found[0]
    if field.is_optional and any(column is None for column in found):
        if all(column is None for column in found):
            return None
        if field.absent is None:
            found = [column for column in found if column is not None]
        else:
            found = [
                np.full(len(part), field.absent, field.dtype) if column is None else column
                for part, column in zip(parts, found, strict=True)
            ]
    if field.rows_of is not None:
        firsts = accumulate((len(getattr(part, field.rows_of)) for part in parts), initial=0)
        found = [column + column.dtype.type(first) for column, first in zip(found, firsts, strict=False)]
    return concat(found) if field.is_record else np.concatenate(found, axis=-1)


def _concat_ids(parts: Sequence[Ids]) -> Ids:
    starts = [np.zeros(1, np.int64)]
    n_bytes = 0
    for ids in parts:
        starts.append(ids.starts[1:] + (n_bytes - ids.starts[0]))
        n_bytes += int(ids.starts[-1] - ids.starts[0])
    return Ids(
        np.concatenate(starts),
        np.concatenate([ids.bytes[ids.starts[0] : ids.starts[-1]] for ids in parts]),
        np.concatenate([ids.hashes for ids in parts]),
    )


def _concat_attributes(parts: Sequence[Attributes]) -> Attributes:
    """Return the attributes of all parts, each text once."""
    firsts = accumulate((len(part.texts) for part in parts), initial=0)
    codes = np.concatenate([part.codes + np.int32(first) for part, first in zip(parts, firsts, strict=False)])
    return with_each_text_once(codes, [text for part in parts for text in part.texts])


def _take(record: Record, rows: Positions | slice) -> Record:
    kind: Any = type(record)
    if kind in _TAKE:
        taken: Record = _TAKE[kind](record, rows)
    else:
        taken = kind(*[_take_field(field, getattr(record, field.name), rows) for field in fields_of(kind)])
    return taken


def _take_field(field: RecordField, column: Any, rows: Positions | slice) -> Any:
    if column is None or field.dtype is None:
        return _take(column, rows) if field.is_record and column is not None else column
    # The method `take` copies into C order. column[..., rows] does not if the column is [d, n], and is slower.
    return column[..., rows] if isinstance(rows, slice) else column.take(rows, axis=-1)


def _take_ids(ids: Ids, rows: Positions | slice) -> Ids:
    if isinstance(rows, slice):
        begin, end, _ = rows.indices(len(ids))
        starts = ids.starts[begin : end + 1]
        return Ids(starts - starts[0], ids.bytes[starts[0] : starts[-1]], ids.hashes[begin:end])
    lengths = np.diff(ids.starts)[rows]
    starts = np.zeros(rows.size + 1, np.int64)
    np.cumsum(lengths, out=starts[1:])
    gathered = np.empty(starts[-1], np.uint8)
    shifts: Int64s = ids.starts[rows] - starts[:-1]
    for begin in range(0, rows.size, IDS_AT_ONCE):
        end = min(begin + IDS_AT_ONCE, rows.size)
        places = np.repeat(shifts[begin:end], lengths[begin:end])
        places += np.arange(starts[begin], starts[end])
        # "clip": no place is outside, and numpy would buffer what it writes to ``out`` if it had to check.
        ids.bytes.take(places, out=gathered[starts[begin] : starts[end]], mode="clip")
    return Ids(starts, gathered, ids.hashes[rows])


def _take_attributes(attributes: Attributes, rows: Positions | slice) -> Attributes:
    """Return the attributes of some rows, without the texts that none of them uses."""
    return with_used_texts(attributes.codes[rows], attributes.texts)


_CONCAT: dict[type, Callable[[Sequence[Any]], Any]] = {Ids: _concat_ids, Attributes: _concat_attributes}
_TAKE: dict[type, Callable[[Any, Positions | slice], Any]] = {Ids: _take_ids, Attributes: _take_attributes}
