"""The parts of event messages under every layout: event ids, and columns of pieces of text.

`kernels.tables.event_ids` computes an event id from the scope, the stream, the event time, and the detail:

    event            scope                                    detail
    of a query       kind, feed, version, query id            2 · ordinal + (1 for +) + 2^32 · reason of an expiry
                                                              + 2^40 · number of the visit of a pass
                                                              + 2^39 if a pass has the time of the
                                                              reading before
    of a transition  kind, feed, version, query id            2^20 · (event time - began) + ordinal
    of a reading     kind, feed, version, query id            ordinal
    inside
    of a join        kind, both feeds, version, query id      (1 for +) + 2 · reason of an expiry
    of a cause       kind, feed, the query's own topic if     256 · ordinal + 16 · reason
                     any; of a command, a confirmation or     + (1 for +, of what is about one query)
                     the end of a query's life as of a query; + 2^40 · number of the visit + (2^63 for +), of a pass
                     the number of the part, behind the first + 2^39 as above

For an event of a join, the pair replaces the stream: both stream ids, event times and ordinals.

An event of a query or of a transition is one crossing. An event of a cause is everything that one reading, command,
confirmation or end of a life changed for one stream (layout `reading`). The confirmations of one crossing by two
queries happen at different moments, and after an edit in different batches: if both had one event, its id would depend
on how readings fall into batches.

The ordinal is the number of earlier readings of the stream at the same event time. It stands in place of a count of
earlier equal events (docs/decisions/0001-event-ids-use-ordinals.md). Between two equal signs for one stream
and one version of a query lies the opposite sign, and with it another reading of the stream. Another version is
another scope. So the ids differ, and the service need not count the events that it wrote before.
"""

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
import pyarrow as pa

from bmq.kernels.tables.event_ids import ID_LENGTH, Words, event_ids, hash_128
from bmq.records import (
    NEVER,
    Bools,
    Crossings,
    Family,
    Feed,
    Int32s,
    Int64s,
    JoinQuery,
    Kind,
    Reason,
    RegionQuery,
    Sign,
    are_of_family,
)
from bmq.wire.json_texts import value_pieces
from bmq.wire.outgoing import concat_texts, text_column

Query = TypeVar("Query", RegionQuery, JoinQuery)
Rows = slice | Int64s
ALL = slice(None)  # a slice, so that taking all rows copies nothing

_EXPIRY_BIT, _BEGIN_BIT, _VISIT_BIT = 32, 39, 40
_TRANSITION_ORDINALS = 20  # low bits for the ordinal; the bits above hold milliseconds
_ENTERED_BIT = np.int64(-(2**63))


def query_scope(feed: Feed, query: RegionQuery, kind: Kind) -> str:
    """Return the scope of the ids of one query's events of one kind."""
    # The feed of the crossing is part of it: an edit may move a query to another feed that has the same stream id.
    return f"{kind}\0{feed.name}\0{query.version}\0{query.query_id}"


def topic_scope(feed: Feed, own_topic: str | None) -> str:
    """Return the scope of the ids of events of causes; ``own_topic`` is None for the common events topic."""
    return f"{Kind.BORDER}\0{feed.name}\0{own_topic or ''}"


def crossing_details(crossings: Crossings) -> Int64s:
    """Return the detail for the id of each event that belongs to one query, int64[n]."""
    details: Int64s = crossings.ordinals.astype(np.int64) * 2 + (crossings.signs == Sign.ENTERED)
    expired = crossings.reasons >= Reason.QUERY_EXPIRED
    if expired.any():
        details += np.where(expired, crossings.reasons.astype(np.int64) << _EXPIRY_BIT, 0)
    if crossings.passes is not None:
        details += (crossings.passes.astype(np.int64) << _VISIT_BIT) + _at_begin(crossings)
    if crossings.began is not None:
        durations = (crossings.event_times - crossings.began) << _TRANSITION_ORDINALS
        transitions = are_of_family(crossings.kinds, Family.TRANSITION)
        details = np.where(transitions, durations + crossings.ordinals, details)
    levels = are_of_family(crossings.kinds, Family.LEVEL)
    return np.where(levels, crossings.ordinals, details) if levels.any() else details


def _at_begin(crossings: Crossings) -> Int64s:
    """Return `_BEGIN_BIT` for each pass that has the time of the reading before it, otherwise 0; int64[n].

    One move of a stream may end and the next may begin in the same millisecond, each with a pass of the same number.
    Their readings have different times, so the ordinals do not distinguish these passes.
    """
    assert crossings.passes is not None
    at_begin = (crossings.passes > 0) & (crossings.event_times == crossings.previous_times)
    bits: Int64s = at_begin.astype(np.int64) << _BEGIN_BIT
    return bits


def cause_details(crossings: Crossings, by_query: Bools) -> Int64s:
    """Return the detail for the id of each event of a cause, int64[n]; if ``by_query``, it belongs to one query."""
    entered = crossings.signs == Sign.ENTERED
    details: Int64s = (crossings.ordinals.astype(np.int64) * 16 + crossings.reasons) * 16 + (entered & by_query)
    if crossings.passes is not None:
        is_pass = crossings.passes > 0
        visits = (crossings.passes.astype(np.int64) << _VISIT_BIT) + _at_begin(crossings)
        details += np.where(is_pass, visits + np.where(entered, _ENTERED_BIT, 0), 0)
    return details


def id_column(
    crossings: Crossings, scopes: Sequence[str], scope_rows: Int32s, details: Int64s, rows: Rows = ALL
) -> pa.Array:
    """Return the event ids of ``rows``, as text; ``scope_rows`` and ``details`` have one element for each of them."""
    streams = hash_128(crossings.ids.starts, crossings.ids.bytes)[rows]
    return id_texts(scopes, scope_rows, streams, crossings.event_times[rows], details)


def id_texts(
    scopes: Sequence[str], scope_rows: Int32s, subjects: Words, event_times: Int64s, details: Int64s
) -> pa.Array:
    """Return event ids as text; ``subjects`` are the hashes of the stream or pair of each event."""
    text = event_ids(_hashes(scopes), scope_rows, subjects, event_times, details)
    return text_column(np.arange(0, text.size + 1, ID_LENGTH), text)


def _hashes(scopes: Sequence[str]) -> Words:
    encoded = [scope.encode() for scope in scopes]
    starts = np.concatenate(([0], np.cumsum([len(scope) for scope in encoded], dtype=np.int64)))
    return hash_128(starts, np.frombuffer(b"".join(encoded), dtype=np.uint8))


def moment_pieces(crossings: Crossings, feed: Feed, rows: Rows = ALL) -> list[pa.Array | str]:
    """Return the pieces from the number of `event_time` to the end of `previous`, `pass` and `confirmed_time`."""
    times = pa.array(crossings.event_times[rows]).cast(pa.string())
    pieces = [times, ',"value":', *value_pieces(feed.dimensions, crossings.values[:, rows])]
    pieces.append(_previous(crossings, feed, rows))
    if crossings.passes is not None:
        pieces.append(pa.array(["", ',"pass":true']).take(pa.array((crossings.passes[rows] > 0).astype(np.int8))))
    if crossings.confirmed_times is not None:
        confirmed = crossings.confirmed_times[rows]
        texts = pa.array(confirmed, mask=confirmed == NEVER).cast(pa.string())
        pieces.append(concat_texts(confirmed.size, ',"confirmed_time":', texts).fill_null(""))
    return pieces


def _previous(crossings: Crossings, feed: Feed, rows: Rows) -> pa.Array | str:
    has_previous = (crossings.has_previous & ~are_of_family(crossings.kinds, Family.LEVEL))[rows]
    if not has_previous.any():
        return ""
    times = pa.array(crossings.previous_times[rows], mask=~has_previous).cast(pa.string())
    value = value_pieces(feed.dimensions, crossings.previous_values[:, rows])
    # A null time makes the whole text null: an event without a previous reading has no such field.
    text = concat_texts(has_previous.size, ',"previous":{"event_time":', times, ',"value":', *value, "}")
    return text.fill_null("")


def used_queries(queries: Sequence[Query], query_rows: Int32s) -> tuple[list[Query], Int32s]:
    """Return the queries that have events, and for each event its row among them."""
    is_used = np.zeros(len(queries), dtype=np.bool_)
    is_used[query_rows] = True
    new_rows = np.cumsum(is_used, dtype=np.int32) - np.int32(1)
    return [queries[row] for row in np.flatnonzero(is_used).tolist()], new_rows[query_rows]
