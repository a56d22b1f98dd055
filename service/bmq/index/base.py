"""What every border index promises, and what it hands back.

Knows arrays only: queries are slots, streams are slots, regions are half-open boxes. Which implementation
stands behind the interface is the business of `choose`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from bmq.records import Float64s, Int8s, Int32s


@dataclass(frozen=True, slots=True)
class Moves:
    """Queries that were entered or left, one row a crossing.

    Attributes
    ----------
    rows : int32[k], which move (or value) of the call, ascending; within one move the order is not defined.
    queries : int32[k], query slots; no (row, query) comes twice.
    signs : int8[k], +1 entered, -1 left.
    visits : delta queries or other candidates looked at; k / visits is the papers' processing efficiency.
    """

    rows: Int32s
    queries: Int32s
    signs: Int8s
    visits: int


class MatchIndex(Protocol):
    """Finds the queries that hold a value. Queries may come and go between any two calls."""

    n_dims: int

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays that the index is made of."""

    def register(self, slots: Int32s, lo: Float64s, hi: Float64s) -> None:
        """Add queries with regions [lo, hi).

        Parameters
        ----------
        slots : int32[m], from 0, none of them registered; those of deregistered queries may come again.
        lo, hi : float64[d, m], ``lo < hi``; -inf and inf are unbounded.

        Raises
        ------
        ValueError
            A slot is registered already or comes twice; a lower border is not below the upper one.
        """

    def deregister(self, slots: Int32s) -> None:
        """Forget queries.

        Raises
        ------
        ValueError
            A slot is not registered, or comes twice.
        """

    def stab(self, values: Float64s) -> Moves:
        """Return all queries that hold each of ``values`` (float64[d, n], finite), with sign +1."""

    def _check(self) -> None:
        """State every invariant; for tests."""


class BorderIndex(MatchIndex, Protocol):
    """Finds, besides, the queries whose border a move crosses."""

    def moves(self, streams: Int32s, previous: Float64s, current: Float64s) -> Moves:
        """Return the queries that hold exactly one end of each move.

        Parameters
        ----------
        streams : int32[n], stream slots from 0; several moves of one stream are in order. An index may keep a
            position for each; a wrong one costs time and never changes the answer.
        previous, current : float64[d, n], finite.
        """


def in_turn(parts: Sequence[Moves], starts: Sequence[int]) -> Moves:
    """Return the crossings of several calls as those of one, in which call k began at ``starts[k]``; O(k)."""
    if len(parts) == 1:
        return parts[0]
    rows = np.concatenate([part.rows + np.int32(start) for part, start in zip(parts, starts, strict=False)])
    queries = np.concatenate([part.queries for part in parts])
    signs = np.concatenate([part.signs for part in parts])
    return Moves(rows, queries, signs, sum(part.visits for part in parts))


def concat_moves(parts: Sequence[Moves]) -> Moves:
    """Return the crossings of several parts of an index as one, ascending by row; O(k log parts)."""
    if len(parts) == 1:
        return parts[0]
    visits = sum(part.visits for part in parts)
    found = [part for part in parts if part.rows.size]
    if not found:
        return Moves(np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.int8), visits)
    if len(found) == 1:
        return Moves(found[0].rows, found[0].queries, found[0].signs, visits)
    rows = np.concatenate([part.rows for part in found])
    # The stable sort merges runs, and each part is one.
    order = np.argsort(rows, kind="stable")
    queries = np.concatenate([part.queries for part in found])
    signs = np.concatenate([part.signs for part in found])
    return Moves(rows[order], queries[order], signs[order], visits)
