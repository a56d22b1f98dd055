"""Crossings and events of joins of one batch as pieces that can be rendered.

Arrow's columns cannot hold the text of some million events, so `job.rendering` cuts large batches with this module.
"""

from collections.abc import Iterator

import numpy as np

from bmq.records import Crossings, JoinedPairs
from bmq.records.column_records import take


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
        yield crossings if (begin, end) == (0, n) else take(crossings, slice(begin, end))
        begin = end


def cut_pairs(pairs: JoinedPairs, size: int) -> Iterator[JoinedPairs]:
    """Yield the events of joins in pieces of ``size`` rows; each event is one message, so any cut is allowed."""
    for begin in range(0, len(pairs), size):
        yield take(pairs, slice(begin, begin + size))
