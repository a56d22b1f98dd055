"""Event messages of joins, rendered a column at a time; `event_messages` does the same for crossings.

    kind                               sign, reason
    band_join                          both
    band_join that reports queries     reason only; the event has only the side that changed the answer
    window_join                        neither

Knows JSON and Arrow; the monitor decides which joined pairs there are.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bmq.kernels.tables.event_ids import Words, hash_128
from bmq.records import NEVER, Feed, Int32s, Int64s, JoinedPairs, JoinQuery, Kind, PairSide, Reason, Sign
from bmq.wire.cloud_events import CloudEvents, event_batch
from bmq.wire.event_pieces import id_texts, used_queries
from bmq.wire.json_texts import escaped, quote, value_pieces
from bmq.wire.outgoing import CROSSING_HEADERS, concat_texts, text_column

# The subject of an event, hashed in place of a stream id: both streams, and which readings of them. Little-endian, like
# the words of all hashes, so that ids are the same on every machine.
_SUBJECT = np.dtype(
    [
        ("left", "<u8", 2),
        ("right", "<u8", 2),
        ("left_time", "<i8"),
        ("right_time", "<i8"),
        ("left_ordinal", "<i4"),
        ("right_ordinal", "<i4"),
    ]
)


def render_pairs(
    pairs: JoinedPairs,
    feeds: Mapping[str, Feed],
    *,
    topic: str,
    key: Literal["stream_id", "query_id"] = "stream_id",
    envelope: CloudEvents | None = None,
) -> pa.RecordBatch:
    """Return the event messages of the joins of two feeds, in their order; the same under both layouts.

    Parameters
    ----------
    feeds : the two feeds by name.
    topic : the topic for events of queries without an `output_topic`.
    key : the Kafka key; `stream_id` is the left stream id, or the right one if the event has only the right side.
    envelope : of each event; None: the events as they are.

    Returns
    -------
    RecordBatch of `outgoing.MESSAGE_SCHEMA`

    Raises
    ------
    pyarrow.ArrowCapacityError
        More than 2 GiB of text; pass fewer pairs at a time.
    """
    n = len(pairs)
    queries, query_rows = used_queries(pairs.queries, pairs.query_rows)
    rows = pa.array(query_rows)
    ids = pair_ids(pairs, queries, query_rows)
    heads = [
        f'","kind":"{query.kind}","query_id":{quote(query.query_id)},"query_version":{query.version}'
        for query in queries
    ]
    values = concat_texts(
        n,
        '{"event_id":"',
        ids,
        pa.array(heads, pa.string()).take(rows),
        _what(pairs, queries, query_rows),
        ',"event_time":',
        pa.array(pairs.event_times).cast(pa.string()),
        _side("left", pairs.left, feeds),
        _side("right", pairs.right, feeds),
        pa.array([f',"tags":{query.tags}}}' for query in queries], pa.string()).take(rows),
    )
    topics = pa.array([query.output_topic or topic for query in queries], pa.string()).take(rows)
    query_ids = pa.array([query.query_id for query in queries], pa.string()).take(rows)
    kinds = pa.array([query.kind.value for query in queries], pa.string()).take(rows)
    headers = dict(zip(CROSSING_HEADERS, (ids, kinds, query_ids), strict=True))
    messages = (topics, _stream_ids(pairs) if key == "stream_id" else query_ids, values)
    return event_batch(messages, headers, pairs.event_times, envelope)


def pair_ids(pairs: JoinedPairs, queries: Sequence[JoinQuery], query_rows: Int32s) -> pa.Array:
    """Return the event ids.

    A pair of readings enters the answer of one version of a query at most once, and leaves it at most once: because of
    a new reading, which makes another pair, or because of an expiry, whose reason is part of the id.
    """
    subjects = np.zeros(len(pairs), dtype=_SUBJECT)
    for name, side in (("left", pairs.left), ("right", pairs.right)):
        is_there = side.event_times != NEVER
        # If a side is absent, the contents of its columns must not influence the id.
        subjects[name][is_there] = hash_128(side.ids.starts, side.ids.bytes)[is_there]
        subjects[f"{name}_time"] = side.event_times
        subjects[f"{name}_ordinal"][is_there] = side.ordinals[is_there]
    scopes = [
        f"{query.kind}\0{pairs.left.feed}\0{pairs.right.feed}\0{query.version}\0{query.query_id}" for query in queries
    ]
    of_expiry = np.where(pairs.reasons >= Reason.QUERY_EXPIRED, pairs.reasons, 0).astype(np.int64)
    details: Int64s = of_expiry * 2 + (pairs.signs == Sign.ENTERED)
    return id_texts(scopes, query_rows, _hashes(subjects), pairs.event_times, details)


def _hashes(records: npt.NDArray[np.void]) -> Words:
    starts = np.arange(len(records) + 1, dtype=np.int64) * records.itemsize
    return hash_128(starts, records.view(np.uint8).reshape(-1))


def _what(pairs: JoinedPairs, queries: Sequence[JoinQuery], query_rows: Int32s) -> pa.Array:
    """Return the pieces of sign and reason."""
    reasons = [f',"reason":"{reason.text}"' for reason in Reason]
    texts = [f"{sign}{reason}" for sign in ("", ',"sign":"-"', ',"sign":"+"') for reason in reasons]
    signs = np.where(pairs.signs == Sign.ENTERED, 2, pairs.signs == Sign.LEFT)
    are_windows = np.array([query.kind is Kind.WINDOW_JOIN for query in queries], dtype=np.bool_)
    rows = np.where(are_windows[query_rows], len(texts), signs * len(reasons) + pairs.reasons)
    return pa.array([*texts, ""]).take(pa.array(rows))


def _side(name: str, side: PairSide, feeds: Mapping[str, Feed]) -> pa.Array:
    """Return the text of one side of each event; "" if the event does not have this side."""
    times = pa.array(side.event_times, mask=side.event_times == NEVER).cast(pa.string())
    # A null time makes the whole text null.
    return concat_texts(
        side.event_times.size,
        f',"{name}":{{"feed":{quote(side.feed)},"stream_id":"',
        escaped(_texts(side), side.ids.bytes),
        '","event_time":',
        times,
        ',"value":',
        *value_pieces(feeds[side.feed].dimensions, side.values),
        "}",
    ).fill_null("")


def _stream_ids(pairs: JoinedPairs) -> pa.Array:
    has_left = pairs.left.event_times != NEVER
    if has_left.all():
        return _texts(pairs.left)
    return pc.if_else(pa.array(has_left), _texts(pairs.left), _texts(pairs.right))


def _texts(side: PairSide) -> pa.Array:
    return text_column(side.ids.starts, side.ids.bytes)
