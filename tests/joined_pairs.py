"""Events of joins from plain rows, for the tests of what counts, cuts and writes them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bmq.records import (
    Band,
    Conjunction,
    JoinedPairs,
    JoinQuery,
    JoinSide,
    Kind,
    PairSide,
    Reason,
    Region,
    Sign,
)
from tests.crossings import make_ids

ANY = Region((-np.inf,), (np.inf,))


def join_query(query_id: str = "j", kind: Kind = Kind.BAND_JOIN, version: int = 18, **options: Any) -> JoinQuery:
    """Return a join of the feeds `left` and `right`, whose band does not matter here."""
    band = Conjunction(ANY, ANY, (Band(0, 0, -1.0, 1.0),))
    return JoinQuery(query_id, version, kind, JoinSide("left"), JoinSide("right"), (band,), **options)


QUERY = join_query()


@dataclass(frozen=True)
class PairRow:
    """One event; an event time of a side that is NEVER: it has no such side."""

    query: JoinQuery = QUERY
    left: str = "l"
    right: str = "r"
    sign: Sign = Sign.ENTERED
    reason: Reason = Reason.MOVED
    left_time: int = 1_700_000_000_000
    right_time: int = 1_700_000_000_001
    event_time: int = 1_700_000_000_001
    ordinals: tuple[int, int] = (0, 0)
    values: tuple[float, float] = (5.0, 5.5)


def make_pairs(rows: Sequence[PairRow]) -> JoinedPairs:
    """Return the rows as columns."""
    queries = tuple(dict.fromkeys(row.query for row in rows))
    return JoinedPairs(
        queries=queries,
        query_rows=np.array([queries.index(row.query) for row in rows], dtype=np.int32),
        signs=np.array([row.sign for row in rows], dtype=np.int8),
        reasons=np.array([row.reason for row in rows], dtype=np.int8),
        event_times=np.array([row.event_time for row in rows], dtype=np.int64),
        left=_side("left", rows, [row.left for row in rows], [row.left_time for row in rows], 0),
        right=_side("right", rows, [row.right for row in rows], [row.right_time for row in rows], 1),
        record_times=np.full(len(rows), -1, dtype=np.int64),
    )


def _side(feed: str, rows: Sequence[PairRow], ids: list[str], times: list[int], side: int) -> PairSide:
    return PairSide(
        feed,
        make_ids(ids),
        np.array(times, dtype=np.int64),
        np.array([row.ordinals[side] for row in rows], dtype=np.int32),
        np.array([[row.values[side] for row in rows]], dtype=np.float64),
    )
