"""What a feed has come to: its clock, the last reading of each stream, the readings that are held back.

Part of `tests.oracle`; shares no code with `bmq`. Says when a reading's turn has come; what it does is for others.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.oracle_queries import Feed, Reading


class Arrived(NamedTuple):
    """A reading and its place among others with its event time."""

    partition: int
    number: int
    reading: Reading


class Happening(NamedTuple):
    """Something that happened to a stream in a batch: a reading was applied, or it was silent for too long.

    ``last``: its last reading, of a reading that was applied this one.
    """

    moment: int
    is_expiry: bool
    feed: str
    last: Reading


@dataclass
class FeedState:
    """A feed under way.

    ``start``: the earliest event time, once no earlier one can come. ``happenings``: what its batch did, in order.
    """

    name: str
    feed: Feed
    clock: int | None = None
    start: int | None = None
    known: dict[str, Reading] = field(default_factory=dict)
    held: list[Arrived] = field(default_factory=list)
    happenings: list[Happening] = field(default_factory=list)
    n_arrived: int = 0
    n_late: int = 0

    @property
    def settled(self) -> int | None:
        """The time before which no reading can come any more."""
        return None if self.clock is None else self.clock - self.feed.max_lateness

    def has_passed(self, due: int) -> bool:
        return self.settled is not None and self.settled > due

    def take(self, arrived: Mapping[int, Sequence[Reading]], mark: int | None) -> list[Reading]:
        """Let the clock go on; return the readings whose turn it is, by (event time, partition, offset)."""
        in_time = self._in_time(arrived)
        times = [reading.event_time for readings in arrived.values() for reading in readings]
        self.clock = max([time for time in (self.clock, mark, *times) if time is not None], default=None)
        waiting = sorted([*self.held, *in_time], key=lambda one: (one.reading.event_time, one.partition, one.number))
        if self.feed.max_lateness:
            self.held = [one for one in waiting if not self.has_passed(one.reading.event_time)]
            waiting = [one for one in waiting if self.has_passed(one.reading.event_time)]
        released = [one.reading for one in waiting]
        if self.start is None and released:
            self.start = released[0].event_time
        elif self.start is None and not self.feed.max_lateness:
            self.start = self.clock
        return released

    def _in_time(self, arrived: Mapping[int, Sequence[Reading]]) -> list[Arrived]:
        """Return what is not too old to be put in order, where readings are held; late ones are counted."""
        in_time = []
        for partition, readings in arrived.items():
            settled = self.settled  # it runs along the partition
            for reading in readings:
                if self.feed.max_lateness and settled is not None and reading.event_time < settled:
                    self.n_late += 1
                    continue
                in_time.append(Arrived(partition, self.n_arrived, reading))
                self.n_arrived += 1
                newest = reading.event_time - self.feed.max_lateness
                settled = newest if settled is None else max(settled, newest)
        return in_time
