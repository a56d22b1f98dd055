"""Crossings of many commands as one batch: what is done with a batch costs the same for one row or a thousand."""

from collections.abc import Sequence

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
