"""How many events there were in the last minute, in a few numbers."""

SPAN_SECONDS = 60
_N_PARTS = 12
_PART_SECONDS = SPAN_SECONDS / _N_PARTS


class MinuteCount:
    """Counts by parts of five seconds; the oldest part is forgotten as a whole."""

    __slots__ = ("_counts", "_part")

    def __init__(self) -> None:
        self._counts = [0] * _N_PARTS
        self._part = 0

    def add(self, now: float, n: int = 1) -> None:
        """Count ``n`` events at ``now``, in seconds of a clock that never goes back."""
        self._forget(now)
        self._counts[self._part % _N_PARTS] += n

    def total(self, now: float) -> int:
        """Return the events of the last minute, to five seconds."""
        self._forget(now)
        return sum(self._counts)

    def _forget(self, now: float) -> None:
        part = int(now / _PART_SECONDS)
        for gone in range(max(self._part + 1, part - _N_PARTS + 1), part + 1):
            self._counts[gone % _N_PARTS] = 0
        self._part = part
