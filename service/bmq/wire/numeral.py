"""A number that keeps its text."""


class Numeral(str):
    """A number as it stands in a record: ids keep their digits, `float(numeral)` is the nearest double."""

    __slots__ = ()
