"""Concatenate the crossings of many commands, and cut a large batch into pieces that can be rendered.

The work on a batch costs about the same for one row as for a thousand, so the crossings of a thousand commands become
one batch. But the text of some million events is more than Arrow's columns hold, so a flood of events is cut.
"""

from collections.abc import Iterator, Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from bmq.records import NEVER, Crossings, Ids, JoinedPairs, PairSide
from bmq.records.concat import concat_ids

T = TypeVar("T", bound=np.generic)


def concat_crossings(parts: Sequence[Crossings]) -> Crossings:
    """Return the crossings of all parts, in their order; at least one part, all of one feed."""
    if len(parts) == 1:
        return parts[0]
    n_queries = np.cumsum([0] + [len(part.queries) for part in parts[:-1]])
    sizes = [len(part) for part in parts]
    query_rows = [part.query_rows + first for part, first in zip(parts, n_queries, strict=True)]
    return Crossings(
        feed=parts[0].feed,
        ids=concat_ids([part.ids for part in parts]),
        queries=tuple(query for part in parts for query in part.queries),
        query_rows=np.concatenate(query_rows).astype(np.int32),
        signs=np.concatenate([part.signs for part in parts]),
        reasons=np.concatenate([part.reasons for part in parts]),
        kinds=np.concatenate([part.kinds for part in parts]),
        event_times=np.concatenate([part.event_times for part in parts]),
        ordinals=np.concatenate([part.ordinals for part in parts]),
        values=np.concatenate([part.values for part in parts], axis=1),
        previous_times=np.concatenate([part.previous_times for part in parts]),
        previous_values=np.concatenate([part.previous_values for part in parts], axis=1),
        has_previous=np.concatenate([part.has_previous for part in parts]),
        record_times=np.concatenate([part.record_times for part in parts]),
        passes=_concat_optional([part.passes for part in parts], sizes, np.int32, 0),
        confirmed_times=_concat_optional([part.confirmed_times for part in parts], sizes, np.int64, NEVER),
        began=_concat_optional([part.began for part in parts], sizes, np.int64, NEVER),
    )


def concat_joined_pairs(parts: Sequence[JoinedPairs]) -> JoinedPairs:
    """Return the events of all parts, in their order; at least one part, all of joins of the same two feeds."""
    if len(parts) == 1:
        return parts[0]
    n_queries = np.cumsum([0] + [len(part.queries) for part in parts[:-1]])
    query_rows = [part.query_rows + first for part, first in zip(parts, n_queries, strict=True)]
    return JoinedPairs(
        queries=tuple(query for part in parts for query in part.queries),
        query_rows=np.concatenate(query_rows).astype(np.int32),
        signs=np.concatenate([part.signs for part in parts]),
        reasons=np.concatenate([part.reasons for part in parts]),
        event_times=np.concatenate([part.event_times for part in parts]),
        left=_concat_sides([part.left for part in parts]),
        right=_concat_sides([part.right for part in parts]),
        record_times=np.concatenate([part.record_times for part in parts]),
    )


def _concat_sides(sides: Sequence[PairSide]) -> PairSide:
    return PairSide(
        sides[0].feed,
        concat_ids([side.ids for side in sides]),
        np.concatenate([side.event_times for side in sides]),
        np.concatenate([side.ordinals for side in sides]),
        np.concatenate([side.values for side in sides], axis=1),
    )


def _concat_optional(
    columns: Sequence[npt.NDArray[T] | None], sizes: Sequence[int], dtype: type[T], missing: int
) -> npt.NDArray[T] | None:
    if all(column is None for column in columns):
        return None
    return np.concatenate(
        [np.full(n, missing, dtype) if column is None else column for column, n in zip(columns, sizes, strict=True)]
    )


def cut_crossings(crossings: Crossings, size: int) -> Iterator[Crossings]:
    """Yield the crossings in pieces of about ``size`` rows; the crossings of one reading or command stay together."""
    n = len(crossings)
    hashes = crossings.ids.hashes
    begins_cause = np.ones(n, dtype=np.bool_)
    begins_cause[1:] = hashes[1:] != hashes[:-1]
    for column in (crossings.event_times, crossings.ordinals, crossings.reasons):
        begins_cause[1:] |= column[1:] != column[:-1]
    begins = np.flatnonzero(begins_cause)
    begin = 0
    while begin < n:
        at = np.searchsorted(begins, begin + size)
        end = int(begins[at]) if at < begins.size else n
        yield _rows(crossings, begin, end)
        begin = end


def cut_pairs(pairs: JoinedPairs, size: int) -> Iterator[JoinedPairs]:
    """Yield the events of joins in pieces of ``size`` rows; each event is one message, so any cut is allowed."""
    for begin in range(0, len(pairs), size):
        rows = slice(begin, begin + size)
        yield JoinedPairs(
            pairs.queries,
            pairs.query_rows[rows],
            pairs.signs[rows],
            pairs.reasons[rows],
            pairs.event_times[rows],
            _side_rows(pairs.left, rows),
            _side_rows(pairs.right, rows),
            pairs.record_times[rows],
        )


def _side_rows(side: PairSide, rows: slice) -> PairSide:
    return PairSide(
        side.feed, _id_rows(side.ids, rows), side.event_times[rows], side.ordinals[rows], side.values[:, rows]
    )


def _id_rows(ids: Ids, rows: slice) -> Ids:
    hashes = ids.hashes[rows]
    starts = ids.starts[rows.start : rows.start + hashes.size + 1]
    return Ids(starts - starts[0], ids.bytes[starts[0] : starts[-1]], hashes)


def _rows(crossings: Crossings, begin: int, end: int) -> Crossings:
    if (begin, end) == (0, len(crossings)):
        return crossings
    rows = slice(begin, end)
    return Crossings(
        feed=crossings.feed,
        ids=_id_rows(crossings.ids, rows),
        queries=crossings.queries,
        query_rows=crossings.query_rows[rows],
        signs=crossings.signs[rows],
        reasons=crossings.reasons[rows],
        kinds=crossings.kinds[rows],
        event_times=crossings.event_times[rows],
        ordinals=crossings.ordinals[rows],
        values=crossings.values[:, rows],
        previous_times=crossings.previous_times[rows],
        previous_values=crossings.previous_values[:, rows],
        has_previous=crossings.has_previous[rows],
        record_times=crossings.record_times[rows],
        passes=None if crossings.passes is None else crossings.passes[rows],
        confirmed_times=None if crossings.confirmed_times is None else crossings.confirmed_times[rows],
        began=None if crossings.began is None else crossings.began[rows],
    )
