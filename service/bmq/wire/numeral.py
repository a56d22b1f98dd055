"""A number that keeps its text."""


class Numeral(str):
    """A number with its text from the record: an id keeps its digits, and `float(numeral)` is the nearest double."""

    __slots__ = ()
