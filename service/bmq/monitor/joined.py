"""Crossings of many commands as one batch, and of one batch as pieces that can be rendered.

What is done with a batch costs the same for one row or a thousand, so a thousand commands are joined; but the text of
some million events is more than Arrow's columns hold, so a flood is cut.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from bmq.records import Crossings, Ids


def join_crossings(parts: Sequence[Crossings]) -> Crossings:
    """Return the crossings of all parts, in their order; at least one part, all of one feed."""
    if len(parts) == 1:
        return parts[0]
    n_queries = np.cumsum([0] + [len(part.queries) for part in parts[:-1]])
    n_bytes = np.cumsum([0] + [part.ids.starts[-1] for part in parts[:-1]])
    starts = [part.ids.starts[:-1] + first for part, first in zip(parts, n_bytes, strict=True)]
    end = n_bytes[-1] + parts[-1].ids.starts[-1]
    query_rows = [part.query_rows + first for part, first in zip(parts, n_queries, strict=True)]
    return Crossings(
        feed=parts[0].feed,
        ids=Ids(
            np.append(np.concatenate(starts), end),
            np.concatenate([part.ids.bytes[: part.ids.starts[-1]] for part in parts]),
            np.concatenate([part.ids.hashes for part in parts]),
        ),
        queries=tuple(query for part in parts for query in part.queries),
        query_rows=np.concatenate(query_rows).astype(np.int32),
        signs=np.concatenate([part.signs for part in parts]),
        reasons=np.concatenate([part.reasons for part in parts]),
        event_times=np.concatenate([part.event_times for part in parts]),
        ordinals=np.concatenate([part.ordinals for part in parts]),
        values=np.concatenate([part.values for part in parts], axis=1),
        previous_times=np.concatenate([part.previous_times for part in parts]),
        previous_values=np.concatenate([part.previous_values for part in parts], axis=1),
        has_previous=np.concatenate([part.has_previous for part in parts]),
        record_times=np.concatenate([part.record_times for part in parts]),
    )


def cut_crossings(crossings: Crossings, size: int) -> Iterator[Crossings]:
    """Yield the crossings in pieces of about ``size`` rows, never cutting what one reading or command caused."""
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


def _rows(crossings: Crossings, begin: int, end: int) -> Crossings:
    if (begin, end) == (0, len(crossings)):
        return crossings
    ids, rows = crossings.ids, slice(begin, end)
    starts = ids.starts[begin : end + 1]
    return Crossings(
        feed=crossings.feed,
        ids=Ids(starts - starts[0], ids.bytes[starts[0] : starts[-1]], ids.hashes[rows]),
        queries=crossings.queries,
        query_rows=crossings.query_rows[rows],
        signs=crossings.signs[rows],
        reasons=crossings.reasons[rows],
        event_times=crossings.event_times[rows],
        ordinals=crossings.ordinals[rows],
        values=crossings.values[:, rows],
        previous_times=crossings.previous_times[rows],
        previous_values=crossings.previous_values[:, rows],
        has_previous=crossings.has_previous[rows],
        record_times=crossings.record_times[rows],
    )
