"""Attribute columns of a table to the attribute texts of the engine: as for records, but by column.

Python touches each different value once, and no row.
"""

from collections.abc import Collection, Sequence

import numpy as np
import pyarrow as pa

from bmq.errors import DeadLetterCode, ReadingError
from bmq.library.shared_arrays import one_array
from bmq.records import Attributes, Int64s
from bmq.records.attribute_texts import with_each_text_once
from bmq.wire.attributes import attribute_text, concat_attributes
from bmq.wire.csv_records import read_cell

Texts = tuple[Int64s, list[str]]  # for each row the number of a text; the texts


def read_attributes(table: pa.Table, names: Sequence[str], cells: Collection[str] = ()) -> Attributes:
    """Return the attributes of all rows.

    Parameters
    ----------
    names : the attribute columns in the order of the feed, at least one.
    cells : columns whose texts are cells of CSV: an empty one is absent, and a text that reads as a number is a number.

    Raises
    ------
    ReadingError
        A column has a type that no attribute has in a record.
    """
    columns = [_texts_of(name, one_array(table.column(name)), are_cells=name in cells) for name in names]
    # A row is a number with one digit for each column. After each digit only the numbers that occur are kept, so no
    # number is larger than the rows times the texts of one column.
    rows = np.zeros(table.num_rows, dtype=np.int64)
    parts: list[tuple[str, ...]] = [()]
    for codes, texts in columns:
        numbers, rows = np.unique(rows * len(texts) + codes, return_inverse=True)
        parts = [(*parts[number // len(texts)], texts[number % len(texts)]) for number in numbers.tolist()]
    return with_each_text_once(rows.astype(np.int32), [concat_attributes(part) for part in parts])


def _texts_of(name: str, column: pa.Array, *, are_cells: bool) -> Texts:
    if pa.types.is_dictionary(column.type) and column.dictionary.null_count:
        column = column.dictionary.take(column.indices)
    if not pa.types.is_dictionary(column.type):
        _check_type(name, column.type)
        if pa.types.is_nested(column.type):
            # A list or an object equals no value of a `where`, whatever it holds.
            values = pa.array(["list", None]).take(pa.array(column.is_null().cast(pa.int8())))
            return values.dictionary_encode().indices.fill_null(1).to_numpy().astype(np.int64), [
                attribute_text([]),
                attribute_text(None),
            ]
        if pa.types.is_null(column.type):
            return np.zeros(len(column), dtype=np.int64), [attribute_text(None)]
        if pa.types.is_floating(column.type):
            column = column.cast(pa.float64())
        column = column.dictionary_encode()
    _check_type(name, column.type.value_type)
    values = column.dictionary.to_pylist()
    texts = [attribute_text(_cell_value(value) if are_cells else value) for value in values]
    codes = column.indices.cast(pa.int64()).fill_null(len(texts)).to_numpy(zero_copy_only=False)
    return codes, [*texts, attribute_text(None)]


def _cell_value(value: object) -> object:
    return (read_cell(value) if value else None) if isinstance(value, str) else value


def _check_type(name: str, kind: pa.DataType) -> None:
    types = pa.types
    texts = (types.is_string, types.is_large_string, types.is_string_view)
    others = (types.is_boolean, types.is_integer, types.is_floating, types.is_null, types.is_nested)
    if not any(is_known(kind) for is_known in (*texts, *others)):
        raise ReadingError(
            DeadLetterCode.WRONG_TYPE,
            f"Column {name!r} is of type {kind}, but an attribute is text, a number or a boolean, as in JSON. Cast the "
            "column to one of these.",
        )
