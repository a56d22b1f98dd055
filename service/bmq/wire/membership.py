"""The streams that are inside now, as messages of a compacted topic: one key for each member, null after it has left.

    key     ["garage-17","vehicles","v7"]     query id, feed, stream id
    value   {"query_id":"garage-17","query_version":18,"feed":"vehicles","stream_id":"v7","since":…,"value":{…}}

A stream is identified by its feed and its id, so the key contains the feed. If an edit moves a query to another feed,
the stream of the old feed leaves and a stream with the same id may enter in the new feed, in any order.

The messages are made from the same crossings as the events, so both agree: neither contains silent members or
suppressed visits. Two sorts of events change no membership and produce no message: passes, which begin and end between
two readings, and the events of transition, match and select queries.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bmq.records import Bools, Crossings, Family, Feed, Sign, are_of_family
from bmq.wire.json_texts import escaped, quote, value_pieces
from bmq.wire.outgoing import MESSAGE_SCHEMA, concat_texts, message_batch, text_column


def render_membership(crossings: Crossings, feed: Feed, *, topic: str) -> pa.RecordBatch:
    """Return the messages of the crossings of one feed, in their order, without passes and other families.

    Parameters
    ----------
    topic : the membership topic.

    Returns
    -------
    RecordBatch of `outgoing.MESSAGE_SCHEMA`, without headers

    Raises
    ------
    pyarrow.ArrowCapacityError
        More than 2 GiB of text; pass fewer crossings at a time.
    """
    rows = np.flatnonzero(_is_membership(crossings))
    n = rows.size
    if not n:
        return pa.RecordBatch.from_pylist([], MESSAGE_SCHEMA)
    # Only the queries that occur in the rows: a batch of crossings may carry the definitions of thousands of queries.
    used, query_rows = np.unique(crossings.query_rows[rows], return_inverse=True)
    queries = [crossings.queries[row] for row in used]
    of_query = pa.array(query_rows)
    feed_name = quote(feed.name)
    streams = escaped(text_column(crossings.ids.starts, crossings.ids.bytes), crossings.ids.bytes).take(pa.array(rows))

    key_heads = pa.array([f'[{quote(query.query_id)},{feed_name},"' for query in queries], pa.string())
    keys = concat_texts(n, key_heads.take(of_query), streams, '"]')
    value_heads = pa.array(
        [
            f'{{"query_id":{quote(query.query_id)},"query_version":{query.version},"feed":{feed_name},"stream_id":"'
            for query in queries
        ],
        pa.string(),
    )
    values = concat_texts(
        n,
        value_heads.take(of_query),
        streams,
        '","since":',
        pa.array(crossings.event_times[rows]).cast(pa.string()),
        ',"value":',
        *value_pieces(feed.dimensions, crossings.values[:, rows]),
        "}",
    )
    is_inside = pa.array(crossings.signs[rows] == Sign.ENTERED)
    values = pc.if_else(is_inside, values, pa.scalar(None, pa.string()))
    headers = pa.array([[]] * n, MESSAGE_SCHEMA.field("headers").type)
    return message_batch(pa.repeat(topic, n), keys, values, headers)


def _is_membership(crossings: Crossings) -> Bools:
    is_membership = are_of_family(crossings.kinds, Family.CROSSING)
    if crossings.passes is not None:
        is_membership &= crossings.passes == 0
    return is_membership
