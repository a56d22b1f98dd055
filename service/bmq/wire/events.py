"""Crossings to event messages, a column at a time.

The text of an event is a row of pieces: what is the same in all events, what belongs to the query (rendered
once for each query), and what belongs to the crossing (Arrow columns). Only ids that need JSON escapes are
touched one by one. Knows JSON and Arrow; what crossed is the monitor's business.

Event ids are those of `kernels.event_ids`, with

    layout     scope                                          detail
    crossing   kind, feed, version, query id                  2 · ordinal + (1 for +)
    reading    kind, feed, the query's own topic if any       256 · ordinal + 16 · reason
    reading,   kind, feed, version, query id                  256 · ordinal + 16 · reason + (1 for +)
    no reading caused it

Departure from design section 5.10: the ordinal, which is the number of the stream's readings at that event
time that came before, stands for "count of earlier equal ones". Between two equal signs of one version of a
query for one stream lies the opposite sign, so another reading of the stream, or another version: the ids
differ, and nobody has to count what was written before.
"""

import json
from collections.abc import Sequence
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bmq.kernels.event_ids import ID_LENGTH, Words, event_ids, hash_128
from bmq.records import Bools, Bytes, Crossings, Feed, Float64s, Int32s, Int64s, Reason, RegionQuery, Sign
from bmq.wire.messages import (
    CROSSING_HEADERS,
    READING_HEADERS,
    header_column,
    join_texts,
    message_batch,
    text_column,
)

KIND = "border"
Rows = slice | Int64s
_ENCODER = json.JSONEncoder(ensure_ascii=False)  # json.dumps makes one at each call, which is most of its time
ALL = slice(None)  # a slice, so that taking all rows copies nothing


def render_crossings(
    crossings: Crossings,
    feed: Feed,
    *,
    topic: str,
    key: Literal["stream_id", "query_id"] = "stream_id",
    layout: Literal["crossing", "reading"] = "crossing",
) -> pa.RecordBatch:
    """Return the event messages of the crossings of one feed, in their order.

    Parameters
    ----------
    topic : where events go whose query has no `output_topic`.
    key : what the Kafka key is; under layout `reading`, where an event has many queries, it is the stream id.
    layout : one event for each crossing, or one for each (stream, cause, topic), a cause being
        a reading or a command.

    Returns
    -------
    RecordBatch of `messages.MESSAGE_SCHEMA`

    Raises
    ------
    pyarrow.ArrowCapacityError
        More than 2 GiB of text, that is some 5 million events; pass fewer crossings at a time.
    """
    used, query_rows = _used_queries(crossings)
    if layout == "reading":
        return _render_by_reading(crossings, feed, used, query_rows, topic)
    return _render_by_crossing(crossings, feed, used, query_rows, topic, key)


def _render_by_crossing(
    crossings: Crossings, feed: Feed, queries: Sequence[RegionQuery], query_rows: Int32s, topic: str, key: str
) -> pa.RecordBatch:
    n = len(crossings)
    rows = pa.array(query_rows)
    streams = text_column(crossings.ids.starts, crossings.ids.bytes)
    entered = crossings.signs == Sign.ENTERED
    ids = _id_column(
        crossings,
        [_query_scope(feed, q) for q in queries],
        query_rows,
        crossings.ordinals.astype(np.int64) * 2 + entered,
    )
    feed_name = _quote(feed.name)
    heads = [
        f'","kind":"{KIND}","query_id":{_quote(q.query_id)},"query_version":{q.version},'
        f'"feed":{feed_name},"stream_id":"'
        for q in queries
    ]
    causes = [f'","sign":"{sign}","reason":"{reason.text}","event_time":' for sign in "-+" for reason in Reason]
    values = join_texts(
        n,
        '{"event_id":"',
        ids,
        pa.array(heads, pa.string()).take(rows),
        _escaped(streams, crossings.ids.bytes),
        pa.array(causes).take(pa.array(entered * len(Reason) + crossings.reasons)),
        *_moment(crossings, feed),
        pa.array([f',"tags":{q.tags}}}' for q in queries], pa.string()).take(rows),
    )
    query_ids = pa.array([q.query_id for q in queries], pa.string()).take(rows)
    topics = pa.array([q.output_topic or topic for q in queries], pa.string()).take(rows)
    headers = header_column(n, CROSSING_HEADERS, ids, KIND, query_ids)
    return message_batch(topics, streams if key == "stream_id" else query_ids, values, headers)


def _render_by_reading(
    crossings: Crossings, feed: Feed, queries: Sequence[RegionQuery], query_rows: Int32s, topic: str
) -> pa.RecordBatch:
    """Return one event for each cause and topic.

    1. Sort the crossings of each cause by topic.
    2. Cut them into events.
    3. Name the events.
    4. Write them.
    """
    # 1. Stable, so that the queries of an event stay in the order of the ledger.
    streams = text_column(crossings.ids.starts, crossings.ids.bytes)
    by_command = crossings.reasons >= Reason.QUERY_REGISTERED
    causes = _causes(crossings, streams, query_rows, by_command)
    own_topics = [q.output_topic if q.output_topic != topic else None for q in queries]
    topics = list(dict.fromkeys(own_topics))
    topic_rows = np.array([topics.index(own) for own in own_topics], dtype=np.int32)[query_rows]
    order = np.lexsort((topic_rows, causes))

    # 2. Where the cause or the topic changes; all but the queries is the same in each crossing of an event.
    is_first = np.ones(order.size, dtype=np.bool_)
    is_first[1:] = (np.diff(causes[order]) != 0) | (np.diff(topic_rows[order]) != 0)
    starts = np.flatnonzero(is_first)
    firsts = order[starts]
    n = firsts.size

    # 3. By command where no reading caused them, since two commands may follow one reading.
    scopes = [f"{KIND}\0{feed.name}\0{own or ''}" for own in topics]
    scopes += [_query_scope(feed, q) for q in queries]
    scope_rows = np.where(by_command, len(topics) + query_rows, topic_rows)[firsts].astype(np.int32)
    entered = crossings.signs == Sign.ENTERED
    numbers = crossings.ordinals.astype(np.int64) * 16 + crossings.reasons
    details = numbers * 16 + (entered & by_command)
    ids = _id_column(crossings, scopes, scope_rows, details[firsts], firsts)

    # 4. A query's id is written once for each crossing, everything else once for each event.
    quoted = pa.array([_quote(q.query_id) for q in queries], pa.string()).take(pa.array(query_rows[order]))
    reasons = pa.array([reason.text for reason in Reason]).take(pa.array(crossings.reasons[firsts]))
    streams = streams.take(pa.array(firsts))
    values = join_texts(
        n,
        '{"event_id":"',
        ids,
        f'","kind":"{KIND}","feed":{_quote(feed.name)},"stream_id":"',
        _escaped(streams, crossings.ids.bytes),
        '","entered":[',
        _joined_where(entered[order], starts, quoted),
        '],"left":[',
        _joined_where(~entered[order], starts, quoted),
        '],"reason":"',
        reasons,
        '","event_time":',
        *_moment(crossings, feed, firsts),
        "}",
    )
    topic_names = pa.array([own or topic for own in topics], pa.string()).take(pa.array(topic_rows[firsts]))
    return message_batch(topic_names, streams, values, header_column(n, READING_HEADERS, ids, KIND))


def _used_queries(crossings: Crossings) -> tuple[list[RegionQuery], Int32s]:
    """Return the queries that crossed anything, and for each crossing its row among them."""
    is_used = np.zeros(len(crossings.queries), dtype=np.bool_)
    is_used[crossings.query_rows] = True
    new_rows = np.cumsum(is_used, dtype=np.int32) - np.int32(1)
    return [crossings.queries[row] for row in np.flatnonzero(is_used)], new_rows[crossings.query_rows]


def _causes(crossings: Crossings, streams: pa.Array, query_rows: Int32s, by_command: Bools) -> Int64s:
    """Return a number for each crossing, ascending, equal for neighbours with the same cause."""
    is_new = np.ones(len(crossings), dtype=np.bool_)
    differs = pc.not_equal(streams[1:], streams[:-1]).to_numpy(zero_copy_only=False).astype(np.bool_)
    for column in (crossings.event_times, crossings.ordinals, crossings.reasons):
        differs |= column[1:] != column[:-1]
    is_new[1:] = differs | (by_command[1:] & (query_rows[1:] != query_rows[:-1]))
    return np.cumsum(is_new)


def _joined_where(chosen: Bools, starts: Int64s, texts: pa.Array) -> pa.Array:
    """Return the chosen texts of each group, with commas between; groups begin at ``starts``."""
    n_before = np.concatenate(([0], np.cumsum(chosen)))
    offsets = n_before[np.concatenate((starts, [chosen.size]))].astype(np.int32)
    return pc.binary_join(pa.ListArray.from_arrays(offsets, texts.filter(pa.array(chosen))), ",")


def _query_scope(feed: Feed, query: RegionQuery) -> str:
    # The feed that the crossing is in: an edit may move a query to another, where a stream has the same id.
    return f"{KIND}\0{feed.name}\0{query.version}\0{query.query_id}"


def _id_column(
    crossings: Crossings, scopes: Sequence[str], scope_rows: Int32s, details: Int64s, rows: Rows = ALL
) -> pa.Array:
    streams = hash_128(crossings.ids.starts, crossings.ids.bytes)[rows]
    text = event_ids(_hashes(scopes), scope_rows, streams, crossings.event_times[rows], details)
    return text_column(np.arange(0, text.size + 1, ID_LENGTH), text)


def _hashes(scopes: Sequence[str]) -> Words:
    encoded = [scope.encode() for scope in scopes]
    starts = np.concatenate(([0], np.cumsum([len(scope) for scope in encoded], dtype=np.int64)))
    return hash_128(starts, np.frombuffer(b"".join(encoded), dtype=np.uint8))


def _moment(crossings: Crossings, feed: Feed, rows: Rows = ALL) -> list[pa.Array | str]:
    """Return the pieces from the number of `event_time` to the end of `previous`."""
    times = pa.array(crossings.event_times[rows]).cast(pa.string())
    return [times, ',"value":', *_value(feed, crossings.values[:, rows]), _previous(crossings, feed, rows)]


def _value(feed: Feed, values: Float64s) -> list[pa.Array | str]:
    # Arrow writes the shortest text that reads back as the same number, and for finite numbers this is JSON.
    pieces: list[pa.Array | str] = []
    for dimension, column in zip(feed.dimensions, values, strict=True):
        pieces += [f"{',' if pieces else '{'}{_quote(dimension)}:", pa.array(column).cast(pa.string())]
    return [*pieces, "}"]


def _previous(crossings: Crossings, feed: Feed, rows: Rows) -> pa.Array | str:
    has_previous = crossings.has_previous[rows]
    if not has_previous.any():
        return ""
    times = pa.array(crossings.previous_times[rows], mask=~has_previous).cast(pa.string())
    value = _value(feed, crossings.previous_values[:, rows])
    # A null time makes the whole text null: an event without a previous reading has no such field.
    text = join_texts(has_previous.size, ',"previous":{"event_time":', times, ',"value":', *value, "}")
    return text.fill_null("")


def _escaped(texts: pa.Array, raw: Bytes) -> pa.Array:
    """Return the texts as they stand inside JSON quotes; ``raw`` holds all their bytes."""
    if not ((raw < ord(" ")) | (raw == ord('"')) | (raw == ord("\\"))).any():
        return texts
    needy = pc.match_substring_regex(texts, r'[\x00-\x1f"\\]')
    return pc.replace_with_mask(texts, needy, pa.array([_quote(t)[1:-1] for t in texts.filter(needy).to_pylist()]))


def _quote(text: str) -> str:
    return _ENCODER.encode(text)
