"""Event messages of border, transition, match and select queries, rendered a column at a time.

The text of an event is a row of pieces: constant pieces, pieces of the query (rendered once for each query), and
pieces of the crossing (Arrow columns). Only ids that need JSON escapes are handled one by one. Knows JSON and Arrow;
the monitor decides which crossings there are.
"""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bmq.records import (
    NEVER,
    Bools,
    Crossings,
    Family,
    Feed,
    Int32s,
    Int64s,
    Kind,
    Reason,
    RegionQuery,
    Sign,
    are_of_family,
    present_kinds,
)
from bmq.wire.cloud_events import CloudEvents, event_batch
from bmq.wire.event_pieces import (
    cause_details,
    crossing_details,
    id_column,
    moment_pieces,
    query_scope,
    topic_scope,
    used_queries,
)
from bmq.wire.json_texts import escaped, quote
from bmq.wire.outgoing import (
    CROSSING_HEADERS,
    READING_HEADERS,
    concat_texts,
    text_column,
)

LONGEST_LIST_BYTES = 450_000  # of query ids in one event: with all else it stays under 1 MiB, Kafka's usual limit

# A command or the end of a query's life causes events of that query alone; a reading causes events of many queries.
# Confirmations also belong to one query; `confirmed_times` marks them.
_BY_QUERY = (Reason.QUERY_REGISTERED, Reason.QUERY_UPDATED, Reason.QUERY_DELETED, Reason.QUERY_EXPIRED)


def render_crossings(
    crossings: Crossings,
    feed: Feed,
    *,
    topic: str,
    key: Literal["stream_id", "query_id"] = "stream_id",
    layout: Literal["crossing", "reading"] = "crossing",
    longest: int = LONGEST_LIST_BYTES,
    envelope: CloudEvents | None = None,
) -> pa.RecordBatch:
    """Return the event messages of the crossings of one feed, in their order.

    Parameters
    ----------
    topic : the topic for events of queries without an `output_topic`.
    key : the Kafka key. Under layout `reading` an event has many queries, so the key is always the stream id.
    layout : `crossing`: one event for each crossing. `reading`: one event for each (stream, cause, topic); a cause is a
        reading, a command, a confirmation, or the end of a life. Under both layouts, transition, match and select
        queries have one event for each row.
    longest : bytes of query ids in one event of layout `reading`. If a cause has more, it has several events.
    envelope : of each event; None: the events as they are.

    Returns
    -------
    RecordBatch of `outgoing.MESSAGE_SCHEMA`

    Raises
    ------
    pyarrow.ArrowCapacityError
        More than 2 GiB of text, which is some 5 million events; pass fewer crossings at a time.
    """
    used, query_rows = used_queries(crossings.queries, crossings.query_rows)
    if layout == "reading":
        return event_batch(*_by_reading(crossings, feed, used, query_rows, topic, longest), envelope)
    keys, values, topics, ids = _by_crossing(crossings, feed, used, query_rows, topic)
    query_ids = pa.array([q.query_id for q in used], pa.string()).take(pa.array(query_rows))
    headers = dict(zip(CROSSING_HEADERS, (ids, _kind_texts(*_kinds(crossings)), query_ids), strict=True))
    messages = (topics, keys if key == "stream_id" else query_ids, values)
    return event_batch(messages, headers, crossings.event_times, envelope)


def _by_crossing(
    crossings: Crossings, feed: Feed, queries: Sequence[RegionQuery], query_rows: Int32s, topic: str
) -> tuple[pa.Array, pa.Array, pa.Array, pa.Array]:
    """Return stream ids, values, topics and event ids of one event for each row."""
    n = len(crossings)
    rows = pa.array(query_rows)
    streams = text_column(crossings.ids.starts, crossings.ids.bytes)
    kinds, scope_rows = _kinds_and_queries(crossings, queries, query_rows)
    ids = _ids(crossings, feed, queries, kinds, scope_rows)
    feed_name = quote(feed.name)
    heads = [
        f'","kind":"{kind}","query_id":{quote(q.query_id)},"query_version":{q.version},"feed":{feed_name},"stream_id":"'
        for kind in kinds
        for q in queries
    ]
    values = concat_texts(
        n,
        '{"event_id":"',
        ids,
        pa.array(heads, pa.string()).take(pa.array(scope_rows)),
        escaped(streams, crossings.ids.bytes),
        _what(crossings, queries, query_rows),
        ',"event_time":',
        *moment_pieces(crossings, feed),
        pa.array([f',"tags":{q.tags}}}' for q in queries], pa.string()).take(rows),
    )
    topics = pa.array([q.output_topic or topic for q in queries], pa.string()).take(rows)
    return streams, values, topics, ids


def crossing_ids(crossings: Crossings, feed: Feed, queries: Sequence[RegionQuery], query_rows: Int32s) -> pa.Array:
    """Return the event id of each row under the layout `crossing`, as text."""
    return _ids(crossings, feed, queries, *_kinds_and_queries(crossings, queries, query_rows))


def _ids(
    crossings: Crossings, feed: Feed, queries: Sequence[RegionQuery], kinds: list[Kind], scope_rows: Int32s
) -> pa.Array:
    scopes = [query_scope(feed, q, kind) for kind in kinds for q in queries]
    return id_column(crossings, scopes, scope_rows, crossing_details(crossings))


def _kinds_and_queries(
    crossings: Crossings, queries: Sequence[RegionQuery], query_rows: Int32s
) -> tuple[list[Kind], Int32s]:
    """Return the kinds that occur, and for each event the row of its kind and query among all pairs of both."""
    kinds, kind_rows = _kinds(crossings)
    return kinds, query_rows + kind_rows * np.int32(len(queries))


def _what(crossings: Crossings, queries: Sequence[RegionQuery], query_rows: Int32s) -> pa.Array:
    """Return the pieces that differ by family: sign and reason, pattern and begin, or only a closing quote."""
    causes = [f'","sign":"{sign}","reason":"{reason.text}"' for sign in "-+" for reason in Reason]
    entered = crossings.signs == Sign.ENTERED
    levels = are_of_family(crossings.kinds, Family.LEVEL)
    rows = np.where(levels, len(causes), entered * len(Reason) + crossings.reasons)
    what = pa.array([*causes, '"']).take(pa.array(rows))
    if crossings.began is None:
        return what
    patterns = [f'","pattern":"{q.pattern.text}","began":' if q.pattern is not None else None for q in queries]
    began = pa.array(crossings.began).cast(pa.string())
    transitions = concat_texts(len(crossings), pa.array(patterns, pa.string()).take(pa.array(query_rows)), began)
    return pc.if_else(pa.array(are_of_family(crossings.kinds, Family.TRANSITION)), transitions, what)


def _kinds(crossings: Crossings) -> tuple[list[Kind], Int32s]:
    """Return the kinds that occur, at least one, and for each event the row of its kind among them."""
    kinds = present_kinds(crossings.kinds) or [Kind.BORDER]
    rows = np.zeros(len(Kind), dtype=np.int32)
    rows[[kind.number for kind in kinds]] = np.arange(len(kinds))
    return kinds, rows[crossings.kinds]


def _kind_texts(kinds: Sequence[Kind], rows: Int32s) -> pa.Array | str:
    return kinds[0].value if len(kinds) == 1 else pa.array([kind.value for kind in kinds]).take(pa.array(rows))


def _by_reading(
    crossings: Crossings, feed: Feed, queries: Sequence[RegionQuery], query_rows: Int32s, topic: str, longest: int
) -> tuple[tuple[pa.Array, pa.Array, pa.Array], dict[str, pa.Array | str], Int64s]:
    """Return topics, keys and values; the headers; and the event times.

    There is an event for each cause and topic of the crossings, or more if it is long, and one for each other row.

    1. Sort the crossings of each cause by topic.
    2. Cut them into events.
    3. Compute the event ids.
    4. Render the events.
    5. Render each row that is not a crossing alone: transitions, and readings inside.
    """
    # 1. The sort is stable, so that the queries of an event stay in the order of the ledger.
    streams = text_column(crossings.ids.starts, crossings.ids.bytes)
    by_query = np.isin(crossings.reasons, _BY_QUERY)
    if crossings.confirmed_times is not None:
        by_query |= crossings.confirmed_times != NEVER
    causes = _causes(crossings, streams, query_rows, by_query)
    own_topics = [q.output_topic if q.output_topic != topic else None for q in queries]
    topics = list(dict.fromkeys(own_topics))
    topic_rows = np.array([topics.index(own) for own in own_topics], dtype=np.int32)[query_rows]
    order = np.lexsort((topic_rows, causes))

    # 2. An event begins where the cause or the topic changes; its crossings differ only in query and sign.
    quoted = pa.array([quote(q.query_id) for q in queries], pa.string()).take(pa.array(query_rows[order]))
    is_first = np.ones(order.size, dtype=np.bool_)
    is_first[1:] = (np.diff(causes[order]) != 0) | (np.diff(topic_rows[order]) != 0)
    parts = _parts(is_first, quoted, longest)
    is_first[1:] |= np.diff(parts) != 0
    starts = np.flatnonzero(is_first)
    firsts = order[starts]
    n = firsts.size

    # 3. The scope is the query if a query caused the event: two commands, or confirmations of two queries, may follow
    # one reading.
    scopes = [topic_scope(feed, own) for own in topics]
    scopes += [query_scope(feed, q, Kind.BORDER) for q in queries]
    scope_rows = np.where(by_query, len(topics) + query_rows, topic_rows)[firsts].astype(np.int32)
    for event in np.flatnonzero(parts[starts]):
        scopes.append(f"{scopes[scope_rows[event]]}\0{parts[starts[event]]}")
        scope_rows[event] = len(scopes) - 1
    ids = id_column(crossings, scopes, scope_rows, cause_details(crossings, by_query)[firsts], firsts)

    # 4. Query ids are rendered once for each crossing, everything else once for each event.
    entered = crossings.signs == Sign.ENTERED
    reasons = pa.array([reason.text for reason in Reason]).take(pa.array(crossings.reasons[firsts]))
    keys = streams.take(pa.array(firsts))
    values = concat_texts(
        n,
        '{"event_id":"',
        ids,
        f'","kind":"{Kind.BORDER}","feed":{quote(feed.name)},"stream_id":"',
        escaped(keys, crossings.ids.bytes),
        '","entered":[',
        _concat_where(entered[order], starts, quoted),
        '],"left":[',
        _concat_where(~entered[order], starts, quoted),
        '],"reason":"',
        reasons,
        '","event_time":',
        *moment_pieces(crossings, feed, firsts),
        "}",
    )
    topic_names = pa.array([own or topic for own in topics], pa.string()).take(pa.array(topic_rows[firsts]))
    kinds, kind_rows = _kinds(crossings)
    if any(kind.family is not Family.CROSSING for kind in kinds):  # 5
        _, alone, _, ids_alone = (
            column.take(pa.array(firsts)) for column in _by_crossing(crossings, feed, queries, query_rows, topic)
        )
        chosen = pa.array(~are_of_family(crossings.kinds, Family.CROSSING)[firsts])
        values, ids = pc.if_else(chosen, alone, values), pc.if_else(chosen, ids_alone, ids)
    headers = dict(zip(READING_HEADERS, (ids, _kind_texts(kinds, kind_rows[firsts])), strict=True))
    return (topic_names, keys, values), headers, crossings.event_times[firsts]


def _parts(is_first: Bools, texts: pa.Array, longest: int) -> Int64s:
    """Return which part of its group each text belongs to, 0 for the first; a part has about ``longest`` bytes."""
    sizes = pc.binary_length(texts).to_numpy().astype(np.int64) + 1
    before = np.cumsum(sizes) - sizes
    parts: Int64s = (before - before[is_first][np.cumsum(is_first) - 1]) // longest
    return parts


def _causes(crossings: Crossings, streams: pa.Array, query_rows: Int32s, by_query: Bools) -> Int64s:
    """Return the number of the cause of each crossing: ascending, and equal for neighbours with the same cause."""
    is_new = np.ones(len(crossings), dtype=np.bool_)
    differs = pc.not_equal(streams[1:], streams[:-1]).to_numpy(zero_copy_only=False).astype(np.bool_)
    columns: list[npt.NDArray[Any]] = [crossings.event_times, crossings.ordinals, crossings.reasons]
    if crossings.confirmed_times is not None:
        columns.append(crossings.confirmed_times)
    if crossings.passes is not None:
        columns += [crossings.passes, np.where(crossings.passes > 0, crossings.signs, 0)]
    for column in columns:
        differs |= column[1:] != column[:-1]
    alone = ~are_of_family(crossings.kinds, Family.CROSSING)
    differs |= alone[1:] | alone[:-1]
    is_new[1:] = differs | (by_query[1:] & (query_rows[1:] != query_rows[:-1]))
    return np.cumsum(is_new)


def _concat_where(chosen: Bools, starts: Int64s, texts: pa.Array) -> pa.Array:
    """Return the chosen texts of each group, with commas between; groups begin at ``starts``."""
    n_before = np.concatenate(([0], np.cumsum(chosen)))
    offsets = n_before[np.concatenate((starts, [chosen.size]))].astype(np.int32)
    return pc.binary_join(pa.ListArray.from_arrays(offsets, texts.filter(pa.array(chosen))), ",")
