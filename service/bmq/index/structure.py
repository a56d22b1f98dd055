"""What a layer asks of its structure: the protocols of border structures and match structures.

Knows the questions, and must not know how a structure answers them.
"""

from typing import Protocol, TypeVar, runtime_checkable

from bmq.index.base import Moves
from bmq.index.packed import PackedQueries
from bmq.records import Bools, Float64s, Int32s


class Structure(Protocol):
    """A structure that is built from the query table of a layer, whose rows never move."""

    @property
    def nbytes(self) -> int:
        """Bytes of its arrays."""

    def _check(self, table: PackedQueries) -> None:
        """Assert every invariant; for tests."""


class BorderStructure(Structure, Protocol):
    """A structure that a layer asks about moves."""

    def moves(self, table: PackedQueries, streams: Int32s, previous: Float64s, current: Float64s) -> Moves:
        """Return the queries of ``table`` that hold exactly one end of each move, as `BorderIndex.moves`."""


@runtime_checkable
class Inserting(Protocol):
    """A border structure that can, in addition, insert rows in place."""

    def insert(self, table: PackedQueries, first_row: int) -> Bools:
        """Insert the rows of ``table`` from ``first_row`` on; return for each whether there was room, bool[n]."""


class MatchStructure(Structure, Protocol):
    """A structure that a layer asks about values."""

    def stab(self, table: PackedQueries, values: Float64s) -> Moves:
        """Return the queries of ``table`` that hold each of ``values``, as `MatchIndex.stab`."""


AnyStructure = TypeVar("AnyStructure", bound=Structure)
