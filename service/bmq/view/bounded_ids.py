"""Ids that were left out, so that each counts once."""

MOST_IDS = 100_000  # a set of so many takes some MB; further ids do not count


class BoundedIds:
    """A set of ids that grows no further than ``most``."""

    def __init__(self, most: int = MOST_IDS) -> None:
        self._most = most
        self._ids: set[str] = set()

    def __len__(self) -> int:
        return len(self._ids)

    def add(self, one: str) -> None:
        """Add an id, if there is room."""
        if len(self._ids) < self._most:
            self._ids.add(one)

    def discard(self, one: str) -> None:
        """Remove an id, if it is there."""
        self._ids.discard(one)
