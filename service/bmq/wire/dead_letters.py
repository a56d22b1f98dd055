"""Dead letters: records of a feed that are no readings, as they came, with the reason in headers."""

import pyarrow as pa

from bmq.wire.messages import DEAD_LETTER_HEADERS, header_column, message_batch


def render_dead_letters(dead: pa.RecordBatch, *, topic: str) -> pa.RecordBatch:
    """Return one message for each refused record: its own key and value, unchanged.

    Parameters
    ----------
    dead : RecordBatch
        key, value : binary, may be null; topic, code, message : string; partition : int32; offset : int64.
        Other columns are left alone.
    topic : the dead-letter topic.

    Returns
    -------
    RecordBatch of `messages.MESSAGE_SCHEMA`
        Headers `topic`, `partition`, `offset` (decimal text), `code`, `message`.
    """
    n = dead.num_rows
    columns = [dead.column(name).cast(pa.string()) for name in DEAD_LETTER_HEADERS]
    headers = header_column(n, DEAD_LETTER_HEADERS, *columns)
    return message_batch(pa.repeat(topic, n), dead.column("key"), dead.column("value"), headers)
