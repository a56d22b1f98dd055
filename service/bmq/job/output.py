"""Messages to the rows that leave the operator, columnar to the last step.

Spark converts nested pandas columns value by value in Python, but passes flat Arrow-backed columns on unchanged. So
each header leaves as a plain binary column, with the number of the header set, and `headers_column` builds the array
that the Kafka sink needs inside the JVM:

    topic | key | value | header_set | h0 | h1 | h2 | h3 | h4 | shard | counters
"""

import numpy as np
import pandas as pd
import pyarrow as pa

from bmq.wire.outgoing import HEADER_SETS

N_HEADERS = max(len(names) for names in HEADER_SETS)
_HEADER_COLUMNS = [f"h{i}" for i in range(N_HEADERS)]

_ARROW_TYPES = {
    "topic": pa.string(),
    "key": pa.binary(),
    "value": pa.binary(),
    "header_set": pa.int32(),
    **dict.fromkeys(_HEADER_COLUMNS, pa.binary()),
    "shard": pa.int32(),
    "counters": pa.string(),
}
_SPARK_TYPES = {pa.string(): "string", pa.binary(): "binary", pa.int32(): "int"}
OUTPUT_DDL = ", ".join(f"{name} {_SPARK_TYPES[arrow_type]}" for name, arrow_type in _ARROW_TYPES.items())


def message_rows(messages: pa.RecordBatch) -> pd.DataFrame:
    """Return the messages as output rows.

    Parameters
    ----------
    messages : batch of `wire.outgoing.MESSAGE_SCHEMA` with at least one row; all rows have the same header names.
    """
    n = messages.num_rows
    columns = {name: messages.column(name) for name in ("topic", "key", "value")}
    headers = messages.column("headers").flatten()
    names = tuple(headers.field("key")[: len(headers) // n].to_pylist())
    values = headers.field("value")
    columns["header_set"] = pa.repeat(pa.scalar(HEADER_SETS.index(names), pa.int32()), n)
    for i in range(len(names)):
        columns[f"h{i}"] = values.take(pa.array(np.arange(i, n * len(names), len(names))))
    return _frame(columns, n)


def counters_row(shard: int, counters: str) -> pd.DataFrame:
    """Return the row that carries a shard's counters to the driver; it has no topic, so Kafka does not get it."""
    columns = {"shard": pa.array([shard], pa.int32()), "counters": pa.array([counters])}
    return _frame(columns, 1)


def headers_column() -> str:
    """Return the SQL expression for the `headers` column of Spark's Kafka sink."""
    cases = [
        f"WHEN {number} THEN array({', '.join(_header(name, i) for i, name in enumerate(names))})"
        for number, names in enumerate(HEADER_SETS)
        if names
    ]
    return f"CASE header_set {' '.join(cases)} END"


def _header(name: str, i: int) -> str:
    return f"named_struct('key', '{name}', 'value', h{i})"


def _frame(columns: dict[str, pa.Array], n: int) -> pd.DataFrame:
    def series(name: str, arrow_type: pa.DataType) -> pd.Series:
        array = columns.get(name)
        if array is None:
            array = pa.nulls(n, arrow_type)
        return pd.Series(pd.arrays.ArrowExtensionArray(array))

    return pd.DataFrame({name: series(name, arrow_type) for name, arrow_type in _ARROW_TYPES.items()})
