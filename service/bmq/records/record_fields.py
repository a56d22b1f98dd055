"""The fields of a record of columns, as its annotations declare them.

Knows annotations; what is done with the fields is the business of `column_records` and `wire.state_bytes`.
"""

from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import numpy as np

from bmq.records.arrays import Absent, ByDimension, RowsOf


@dataclass(frozen=True, slots=True)
class RecordField:
    """One field of a record.

    Attributes
    ----------
    type : the annotation without its notes and without None.
    is_optional : None is allowed.
    dtype : of the column; None: the field is not a column.
    by_dimension : the column is [d, n].
    rows_of : the field with the table that the column's numbers are rows of; None: they are no rows.
    is_table : a column of the record holds rows of this tuple.
    absent : the number that None stands for in each row; None: there is none.
    is_record : the field is itself a record.
    """

    name: str
    type: Any
    is_optional: bool
    dtype: np.dtype[Any] | None
    by_dimension: bool
    rows_of: str | None
    is_table: bool
    absent: int | None
    is_record: bool


@cache
def fields_of(record: type) -> tuple[RecordField, ...]:
    """Return the fields of a dataclass in their order; the annotations are read once per class."""
    hints = get_type_hints(record, include_extras=True)
    split = {field.name: _split(hints[field.name]) for field in fields(record)}
    tables = {note.table for _, _, notes in split.values() for note in notes if isinstance(note, RowsOf)}
    return tuple(
        RecordField(
            name=name,
            type=kind,
            is_optional=is_optional,
            dtype=np.dtype(get_args(get_args(kind)[1])[0]) if get_origin(kind) is np.ndarray else None,
            by_dimension=any(isinstance(note, ByDimension) for note in notes),
            rows_of=next((note.table for note in notes if isinstance(note, RowsOf)), None),
            is_table=name in tables,
            absent=next((note.number for note in notes if isinstance(note, Absent)), None),
            is_record=is_dataclass(kind),
        )
        for name, (kind, is_optional, notes) in split.items()
    )


def _split(hint: Any) -> tuple[Any, bool, tuple[object, ...]]:
    """Return the type in an annotation, whether None is allowed, and the notes."""
    if get_origin(hint) is Annotated:
        kind, is_optional, notes = _split(hint.__origin__)
        return kind, is_optional, (*notes, *hint.__metadata__)
    if get_origin(hint) in (Union, UnionType):
        others = [kind for kind in get_args(hint) if kind is not NoneType]
        if len(others) == 1:
            kind, _, notes = _split(others[0])
            return kind, True, notes
    return hint, False, ()
