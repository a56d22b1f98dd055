"""Deltas as values that compare: rows with all their columns, whatever order a table has them in.

A restored monitor has the rows of its tables, and the texts of attributes, in the order in which they came back. So its
snapshot holds the same rows in other bytes.
"""

import dataclasses
from collections.abc import Mapping

import numpy as np

from bmq.records import Attributes, Delta, Ids, Readings, StreamRows, TrackingRows


def plain(record: object) -> object:
    """Return a part of a delta as dicts, lists and scalars; numbers with the type of their column."""
    match record:
        case StreamRows() | TrackingRows():
            return sorted(_rows(record), key=repr)
        case Readings():
            return _rows(record)
        case np.ndarray():
            return [record.dtype.str, *record.tolist()]
        case Mapping():
            return {repr(name): plain(value) for name, value in sorted(record.items(), key=repr)}
        case tuple():
            return [plain(value) for value in record]
    if dataclasses.is_dataclass(record) and not isinstance(record, type):
        return {field.name: plain(getattr(record, field.name)) for field in dataclasses.fields(record)}
    return record


def without_order(pages: list[Delta]) -> list[object]:
    """Return the pages of a snapshot as plain values."""
    return [plain(page) for page in pages]


def _rows(rows: StreamRows | TrackingRows | Readings) -> list[object]:
    columns = {field.name: getattr(rows, field.name) for field in dataclasses.fields(rows)}
    query_ids = columns.pop("query_ids", None)
    if query_ids is not None:
        columns["query_rows"] = [query_ids[row] for row in columns["query_rows"].tolist()]
    return [
        {name: _cell(column, i) for name, column in columns.items() if column is not None} for i in range(len(rows.ids))
    ]


def _cell(column: object, i: int) -> object:
    match column:
        case Ids():
            return column.text(i)
        case Attributes():
            return column.texts[int(column.codes[i])]
        case np.ndarray():
            return [column.dtype.str, column[..., i].tolist()]
        case list():
            return column[i]
    raise TypeError(f"{type(column).__name__} is no column. Say here what a row of it is.")
