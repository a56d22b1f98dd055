"""Kinds of queries and of their events, and the families that kinds belong to."""

from enum import IntEnum, StrEnum

import numpy as np
import numpy.typing as npt

from bmq.records.arrays import Bools, Int8s


class Family(IntEnum):
    """What the events of a kind say. The service orders, counts and writes the kinds of one family in the same way."""

    CROSSING = 0  # a stream enters or leaves a region: a sign and a reason
    TRANSITION = 1  # crossings of a region within a time: a pattern and a begin
    LEVEL = 2  # a reading is inside: neither; the query has no members
    JOIN = 3  # a pair of readings of two feeds


class Kind(StrEnum):
    """What a query reports, and what an event reports.

    An event carries the definition in force, but its kind is that of the query that made it. The two differ after an
    edit from `border` to another kind: the `-` of the memberships that end carry the new definition and are of kind
    `border`.
    """

    BORDER = "border"
    TRANSITION = "transition"
    MATCH = "match"
    SELECT = "select"
    BAND_JOIN = "band_join"
    WINDOW_JOIN = "window_join"

    @property
    def family(self) -> Family:
        """What its events say."""
        return _FAMILY_OF_KIND[self]

    @property
    def number(self) -> int:
        """The number of the kind in a column `kinds` of events. Neither state nor frames hold it."""
        return _NUMBERS[self]


_FAMILY_OF_KIND = {
    Kind.BORDER: Family.CROSSING,
    Kind.TRANSITION: Family.TRANSITION,
    Kind.MATCH: Family.LEVEL,
    Kind.SELECT: Family.LEVEL,
    Kind.BAND_JOIN: Family.JOIN,
    Kind.WINDOW_JOIN: Family.JOIN,
}
_KINDS = tuple(Kind)
_NUMBERS = {kind: number for number, kind in enumerate(_KINDS)}
_FAMILIES: npt.NDArray[np.int8] = np.array([kind.family for kind in _KINDS], dtype=np.int8)


def are_of_family(kinds: Int8s, family: Family) -> Bools:
    """Return which events are of a family, bool[n]; ``kinds``: int8[n], numbers."""
    are_of: Bools = _FAMILIES[kinds] == family
    return are_of


def present_kinds(kinds: Int8s) -> list[Kind]:
    """Return the kinds that occur, in the order of their numbers; ``kinds``: int8[n], numbers."""
    return [_KINDS[number] for number in np.flatnonzero(np.bincount(kinds, minlength=1)).tolist()]
