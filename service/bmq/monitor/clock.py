"""The event-time clock of one feed: a function of the data alone, and the same in every shard.

clock     the latest event time of all readings of the feed; marks carry it to every shard
settled   the clock less `max_lateness`: timers that are due before it fire, and held readings before it apply
"""

from bmq.records import NEVER, Clock


class FeedClock:
    """How far the event time of one feed has come.

    Parameters
    ----------
    max_lateness_ms : by how much the event time of a reading may be older than the clock.
    """

    def __init__(self, max_lateness_ms: int) -> None:
        self._max_lateness = max_lateness_ms
        self.now = Clock()

    @property
    def settled(self) -> int:
        """The settled time, epoch ms; NEVER before the first reading."""
        return NEVER if self.now.time == NEVER else self.now.time - self._max_lateness

    @property
    def start(self) -> int:
        """The time of the earliest reading, epoch ms; NEVER while an earlier reading can still come.

        The `ttl` of a query that was put before the first reading runs from here. With `max_lateness` an earlier
        reading can come until the settled time is beyond the earliest reading.
        """
        if self.now.earliest == NEVER or (self._max_lateness and self.settled <= self.now.earliest):
            return NEVER
        return self.now.earliest

    def move(self, marks: Clock) -> None:
        """Move the clock by the earliest and latest event time of a batch; NEVER: the batch has no readings."""
        settled, start = self.settled, self.start
        earliest = self.now.earliest
        if start == NEVER and marks.earliest != NEVER and marks.time >= settled:
            # A reading before the settled time is late, and a `ttl` does not run from it. If a batch has late and
            # other readings, the marks do not contain the first of the others. The settled time stands for it, and is
            # at most `max_lateness` earlier.
            first = max(marks.earliest, settled)
            earliest = first if earliest == NEVER else min(earliest, first)
        elif earliest == NEVER:
            earliest = marks.time
        self.now = Clock(max(self.now.time, marks.time), earliest)

    def set(self, clock: Clock) -> None:
        """Set the clock to the value in a delta."""
        self.now = clock
