"""Events of joins, as columns."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from bmq.records.arrays import Int8s, Int32s, Int64s, RowsOf, Values
from bmq.records.columns import Ids
from bmq.records.queries import JoinQuery


@dataclass(frozen=True, slots=True)
class PairSide:
    """The readings of one side of many pairs, one row a pair.

    Attributes
    ----------
    event_times : int64[n], epoch ms; NEVER: this event has no such side.
    ordinals : int32[n], how many readings of the stream at that event time came before.
    values : float64[d, n], the feed's dimensions.
    """

    feed: str
    ids: Ids
    event_times: Int64s
    ordinals: Int32s
    values: Values


@dataclass(frozen=True, slots=True)
class JoinedPairs:
    """Events of joins of the same two feeds, in output order.

    Attributes
    ----------
    queries : the definitions that `query_rows` points into.
    query_rows : int32[n].
    signs, reasons : int8[n], `Sign` and `Reason`. Of a window join, and of a band join that reports queries, the sign
        is NONE. The reason is that of the reading that made the pair, as if the pair were a region.
    event_times : int64[n], epoch ms: the later of the two readings, or the moment of an expiry.
    left, right : the two readings; where a band join reports queries only the one that changed the answer is there.
    record_times : int64[n], epoch ms of the record that caused it; -1 where no reading did.
    """

    queries: tuple[JoinQuery, ...]
    query_rows: Annotated[Int32s, RowsOf("queries")]
    signs: Int8s
    reasons: Int8s
    event_times: Int64s
    left: PairSide
    right: PairSide
    record_times: Int64s

    def __len__(self) -> int:
        return self.query_rows.size

    @property
    def kinds(self) -> Int8s:
        """The kind of each event, int8[n], `Kind.number`: of a join that of its query."""
        of_queries: Int8s = np.array([query.kind.number for query in self.queries], dtype=np.int8)
        return of_queries[self.query_rows]
