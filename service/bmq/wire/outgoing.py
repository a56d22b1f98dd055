"""The schema of every message that the service writes, and functions that its renderers share.

Output stays in columns until the last step: a Python object for each event would cost more than finding the event.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bmq.records import Bytes, Int64s

_HEADER = pa.struct([("key", pa.string()), ("value", pa.binary())])
MESSAGE_SCHEMA = pa.schema(
    [("topic", pa.string()), ("key", pa.binary()), ("value", pa.binary()), ("headers", pa.list_(_HEADER))]
)

# The header names of each sort of message; membership records and replies have none. All rows of a batch have the
# same.
CROSSING_HEADERS = ("event_id", "kind", "query_id")
READING_HEADERS = ("event_id", "kind")
DEAD_LETTER_HEADERS = ("topic", "partition", "offset", "code", "message")
# Only if the topic of a query cannot be used: the topic, and why its events are elsewhere.
DIVERTED_HEADERS = ("output_topic", "output_topic_error")


def message_batch(topics: pa.Array, keys: pa.Array, values: pa.Array, headers: pa.Array) -> pa.RecordBatch:
    """Return the columns as one batch of `MESSAGE_SCHEMA`; texts become bytes without a copy."""
    columns = [topics, keys.cast(pa.binary()), values.cast(pa.binary()), headers]
    return pa.RecordBatch.from_arrays(columns, schema=MESSAGE_SCHEMA)


def divert(messages: pa.RecordBatch, missing: Mapping[str, str], topic: str) -> Iterator[pa.RecordBatch]:
    """Yield the messages, those for a missing topic with another topic, and last.

    Each of these has two headers more: the topic that it is meant for, and why it is not there.

    Parameters
    ----------
    missing : topic -> why it cannot be used.
    topic : where their messages go instead.
    """
    is_missing = pc.is_in(messages.column("topic"), pa.array(list(missing), pa.string()))
    kept, diverted = messages.filter(pc.invert(is_missing)), messages.filter(is_missing)
    if kept.num_rows:
        yield kept
    if diverted.num_rows:
        meant = diverted.column("topic").dictionary_encode()
        reasons = pa.array([missing[name] for name in meant.dictionary.to_pylist()], pa.binary()).take(meant.indices)
        headers = diverted.column("headers")
        for name, texts in zip(DIVERTED_HEADERS, (diverted.column("topic").cast(pa.binary()), reasons), strict=True):
            headers = _with_header(headers, name, texts)
        topics = pa.repeat(topic, diverted.num_rows)
        yield message_batch(topics, diverted.column("key"), diverted.column("value"), headers)


def _with_header(headers: pa.ListArray, name: str, texts: pa.Array) -> pa.ListArray:
    """Return headers with one more behind those of each row; all rows have the same number of them."""
    n, flat = len(headers), headers.flatten()
    width = len(flat) // n
    rows = np.column_stack([np.arange(len(flat)).reshape(n, width), len(flat) + np.arange(n)]).ravel()
    keys = pa.concat_arrays([flat.field("key"), pa.repeat(name, n)]).take(pa.array(rows))
    values = pa.concat_arrays([flat.field("value"), texts]).take(pa.array(rows))
    starts = np.arange(0, rows.size + 1, width + 1, dtype=np.int32)
    return pa.ListArray.from_arrays(starts, pa.StructArray.from_arrays([keys, values], fields=list(_HEADER)))


def text_column(starts: Int64s, texts: Bytes) -> pa.Array:
    """Return the texts ``texts[starts[i]:starts[i + 1]]`` as a string column over the same memory.

    Parameters
    ----------
    starts : int64[n + 1]
    texts : uint8[starts[n]] or longer, valid UTF-8.

    Raises
    ------
    pyarrow.ArrowCapacityError
        The texts are longer than the 2 GiB that 32-bit offsets reach; render fewer messages at a time.
    """
    if starts[-1] > np.iinfo(np.int32).max:
        raise pa.ArrowCapacityError(f"{starts[-1]} bytes of text are over 2 GiB; render fewer messages at a time")
    offsets = pa.py_buffer(starts.astype(np.int32))
    return pa.Array.from_buffers(pa.string(), starts.size - 1, [None, offsets, pa.py_buffer(texts)])


def concat_texts(n: int, *pieces: pa.Array | str) -> pa.Array:
    """Return n texts; text i joins the i-th text of each column, and each single text, in the order of ``pieces``."""
    return pc.binary_join_element_wise(pa.repeat("", n), *pieces, "")


def header_column(n: int, names: Sequence[str], *columns: pa.Array | str) -> pa.Array:
    """Return n lists of headers.

    Parameters
    ----------
    names : the same for all rows.
    columns : the values of each name: string[n] without nulls, or one text for all.
    """
    # Joined without separators, the values of one list lie side by side, and the values of the next list follow. This
    # already is the buffer of all values; only the offsets are missing.
    joined = concat_texts(n, *columns)
    lengths = np.empty((n, len(names)), dtype=np.int64)
    for i, column in enumerate(columns):
        lengths[:, i] = len(column.encode()) if isinstance(column, str) else pc.binary_length(column)
    starts = np.concatenate(([0], np.cumsum(lengths.ravel())))
    values = text_column(starts, np.frombuffer(joined.buffers()[2] or b"", np.uint8)).cast(pa.binary())

    keys = pa.array(names, pa.string()).take(pa.array(np.tile(np.arange(len(names)), n)))
    lists = np.arange(0, lengths.size + 1, len(names), dtype=np.int32)
    return pa.ListArray.from_arrays(lists, pa.StructArray.from_arrays([keys, values], fields=list(_HEADER)))
