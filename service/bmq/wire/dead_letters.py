"""Dead letters: the records of a feed that are not readings, unchanged, with the reason in headers."""

import pyarrow as pa
import pyarrow.compute as pc

from bmq.wire.outgoing import DEAD_LETTER_HEADERS, header_column, message_batch

LONGEST_BYTES = 450_000  # for a key, and for a value: together with the headers they stay under 1 MiB
LEFT_OUT = " (too long for a dead letter: the key or value is left out)"


def render_dead_letters(dead: pa.RecordBatch, *, topic: str, longest: int = LONGEST_BYTES) -> pa.RecordBatch:
    """Return one message for each refused record, with its own key and value, unchanged.

    A key or value longer than ``longest`` is left out, and the header `message` mentions it. By default a Kafka topic
    accepts records of up to 1 MiB, and a dead letter that the broker refuses would stop the job. Topic, partition and
    offset name the original record.

    Parameters
    ----------
    dead : RecordBatch
        key, value : binary, may be null; topic, code, message : string; partition : int32; offset : int64.
        Other columns are ignored.
    topic : the dead-letter topic.
    longest : bytes of a key, and of a value.

    Returns
    -------
    RecordBatch of `outgoing.MESSAGE_SCHEMA`
        Headers `topic`, `partition`, `offset` (decimal text), `code`, `message`.
    """
    n = dead.num_rows
    key, key_is_long = _shortened(dead.column("key"), longest)
    value, value_is_long = _shortened(dead.column("value"), longest)
    note = pc.if_else(pc.or_(key_is_long, value_is_long), LEFT_OUT, "")
    message = pc.binary_join_element_wise(dead.column("message"), note, "")
    columns = [message if name == "message" else dead.column(name).cast(pa.string()) for name in DEAD_LETTER_HEADERS]
    headers = header_column(n, DEAD_LETTER_HEADERS, *columns)
    return message_batch(pa.repeat(topic, n), key, value, headers)


def _shortened(column: pa.Array, longest: int) -> tuple[pa.Array, pa.Array]:
    """Return the column with null for each entry that is too long, and for each row whether it was too long."""
    is_long = pc.fill_null(pc.greater(pc.binary_length(column), longest), False)
    return pc.if_else(is_long, pa.scalar(None, column.type), column), is_long
