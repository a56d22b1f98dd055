"""The event-time clock of one feed: a function of the data alone, and the same in every shard.

clock     the latest event time of all readings of the feed, told to every shard by marks
settled   the clock less `max_lateness`: what is due before it fires, and held readings before it apply
"""

from bmq.records import NEVER, Clock


class FeedClock:
    """How far the event time of one feed has come.

    Parameters
    ----------
    max_lateness_ms : how far a reading may be behind the clock.
    """

    def __init__(self, max_lateness_ms: int) -> None:
        self._max_lateness = max_lateness_ms
        self.now = Clock()

    @property
    def settled(self) -> int:
        """Epoch ms; NEVER before the first reading."""
        return NEVER if self.now.time == NEVER else self.now.time - self._max_lateness

    @property
    def start(self) -> int:
        """The time of the earliest reading once no earlier one can come, NEVER before.

        A `ttl` that was put before any reading runs from here. Readings that are held may still be preceded.
        """
        if self.now.earliest == NEVER or (self._max_lateness and self.settled <= self.now.earliest):
            return NEVER
        return self.now.earliest

    def move(self, marks: Clock) -> None:
        """Take in the earliest and latest event time that a batch brought, NEVER where it brought none."""
        settled, start = self.settled, self.start
        earliest = self.now.earliest
        if start == NEVER and marks.earliest != NEVER and marks.time >= settled:
            # What is before the settled time is late, and no reading to count from. Where a batch has such ones and
            # others, the marks do not tell the first of the others: the settled time is at most `max_lateness` before.
            first = max(marks.earliest, settled)
            earliest = first if earliest == NEVER else min(earliest, first)
        elif earliest == NEVER:
            earliest = marks.time
        self.now = Clock(max(self.now.time, marks.time), earliest)

    def set(self, clock: Clock) -> None:
        """Set the clock as another shard's delta says."""
        self.now = clock
