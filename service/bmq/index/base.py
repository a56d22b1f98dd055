"""The interfaces of match indexes and border indexes, and the results that they return.

Knows arrays only: queries are slots, streams are slots, regions are half-open boxes. It must not know which structure
implements an interface; `index.border.adaptive_border` and `index.match.adaptive_match` choose that.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from bmq.records import Float64s, Int8s, Int32s
from bmq.records.column_records import as_one, concat, take


@dataclass(frozen=True, slots=True)
class Moves:
    """The queries that were entered or left, one row a crossing.

    Attributes
    ----------
    rows : int32[k], the number of the move (or value) in the call, ascending; within one move the order is undefined.
    queries : int32[k], query slots; no (row, query) comes twice.
    signs : int8[k], +1 entered, -1 left.
    visits : how many delta queries or other candidates were looked at; k / visits is the papers' processing efficiency.
    """

    rows: Int32s
    queries: Int32s
    signs: Int8s
    visits: int


class MatchIndex(Protocol):
    """Finds the queries that hold a value. Queries may be added and removed between any two calls."""

    n_dims: int

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays of which the index consists."""

    def register(self, slots: Int32s, lo: Float64s, hi: Float64s) -> None:
        """Add queries with regions [lo, hi).

        Parameters
        ----------
        slots : int32[m], from 0; none of them is registered. The slot of a deregistered query may be used again.
        lo, hi : float64[d, m], ``lo < hi``; -inf and inf are allowed: the region is unbounded there.

        Raises
        ------
        ValueError
            A slot is registered already or comes twice, or a lower border is not below the upper one.
        """

    def deregister(self, slots: Int32s) -> None:
        """Remove queries.

        Parameters
        ----------
        slots : int32[m]

        Raises
        ------
        ValueError
            A slot is not registered, or comes twice.
        """

    def stab(self, values: Float64s) -> Moves:
        """Return all queries that hold each of ``values`` (float64[d, n], finite), with sign +1."""

    def _check(self) -> None:
        """Assert every invariant; for tests."""


class BorderIndex(MatchIndex, Protocol):
    """Finds, in addition, the queries whose border a move crosses."""

    def moves(self, streams: Int32s, previous: Float64s, current: Float64s) -> Moves:
        """Return the queries that hold exactly one end of each move.

        Parameters
        ----------
        streams : int32[n]
            Stream slots from 0; several moves of one stream are in order. An index may keep a position hint for each
            stream; a wrong hint costs time and never changes the answer.
        previous, current : float64[d, n], finite; where each move begins and ends.
        """


def in_turn(parts: Sequence[Moves], starts: Sequence[int]) -> Moves:
    """Return the crossings of several calls as those of one call; O(k).

    Parameters
    ----------
    parts : the results of the calls, in order.
    starts : the row of the joint call at which each of the calls begins.
    """
    if len(parts) == 1:
        return parts[0]
    rows = np.concatenate([part.rows + np.int32(start) for part, start in zip(parts, starts, strict=False)])
    return replace(concat(parts), rows=rows, visits=sum(part.visits for part in parts))


def concat_moves(parts: Sequence[Moves]) -> Moves:
    """Return the crossings of several parts of an index as those of one index, ascending by row; O(k log parts)."""
    if len(parts) == 1:
        return parts[0]
    visits = sum(part.visits for part in parts)
    found = [part for part in parts if part.rows.size]
    if not found:
        return Moves(np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.int8), visits)
    whole = as_one(found)
    if len(found) > 1:
        # A stable sort merges ascending runs, and each part is one.
        whole = take(whole, np.argsort(whole.rows, kind="stable"))
    return replace(whole, visits=visits)
