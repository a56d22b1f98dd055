"""The event-time clock of one feed: a function of the data alone, and the same in every shard.

clock     the latest event time of all readings of the feed; marks carry it to every shard
settled   the clock less `max_lateness`: for streams without a lag, timers that are due before it fire, and held
          readings before it apply
"""

from bmq.records import NEVER, Clock


class FeedClock:
    """How far the event time of one feed has come.

    Parameters
    ----------
    max_lateness_ms : by how much the readings of a stream may be out of order.
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
        """The time of the earliest reading, epoch ms; NEVER: not known yet.

        The `ttl` of a query that was put before the first reading runs from here. With `max_lateness` it is known when
        the settled time is beyond the earliest reading so far; an earlier reading after that does not count. The clock
        does not know streams, so a late reading in the first batch counts, too.
        """
        if self.now.earliest == NEVER or (self._max_lateness and self.settled <= self.now.earliest):
            return NEVER
        return self.now.earliest

    def move(self, marks: Clock) -> None:
        """Move the clock by the earliest and latest event time of a batch; NEVER: the batch has no readings."""
        earliest = self.now.earliest
        if self.start == NEVER and marks.earliest != NEVER and marks.time >= self.settled:
            # A reading before the settled time is late, or its stream is behind. The clock began after such a reading,
            # so it moves the start to the settled time at most.
            first = max(marks.earliest, self.settled)
            earliest = first if earliest == NEVER else min(earliest, first)
        elif earliest == NEVER:
            earliest = marks.time
        self.now = Clock(max(self.now.time, marks.time), earliest)

    def set(self, clock: Clock) -> None:
        """Set the clock to the value in a delta."""
        self.now = clock
