"""How many examples a property gets that costs more, or finds more, than others."""

from hypothesis import settings

FEWEST = 5


def times(factor: float) -> int:
    """Return so many times the examples of the profile, so that `make nightly` draws more of each property."""
    return max(FEWEST, round(factor * settings().max_examples))
