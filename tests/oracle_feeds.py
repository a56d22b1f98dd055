"""What a feed has come to: its clock, the last reading and the lag of each stream, the readings that are held back.

Part of `tests.oracle`; shares no code with `bmq`. It defines when a reading's turn has come, and how far the time of
each stream is. What a reading does is for others.

    clock      the latest event time of the feed
    settled    the clock less `max_lateness`
    lag        of a reading: by how much the settled time was beyond it before its batch; of a stream: of its last
               applied reading
    own time   of a stream: the settled time less the lag. What is due before it is over.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.oracle_queries import Feed, Reading


class Arrived(NamedTuple):
    """A reading, its place among others with its event time, and its lag."""

    partition: int
    number: int
    reading: Reading
    lag: int


class Happening(NamedTuple):
    """Something that happened to a stream in a batch: a reading was applied, or it was silent for too long.

    ``last``: its last reading, of a reading that was applied this one.
    """

    moment: int
    is_expiry: bool
    feed: str
    last: Reading
    lag: int = 0


@dataclass
class FeedState:
    """A feed under way.

    ``start``: the earliest event time, once the settled time is beyond it. ``settled_before``: before the last batch.
    ``lags``: of all streams; nothing asks for that of an unknown one. ``happenings``: what its batch did, in order.
    """

    name: str
    feed: Feed
    clock: int | None = None
    earliest: int | None = None
    start: int | None = None
    settled_before: int | None = None
    known: dict[str, Reading] = field(default_factory=dict)
    lags: dict[str, int] = field(default_factory=dict)
    held: list[Arrived] = field(default_factory=list)
    happenings: list[Happening] = field(default_factory=list)
    n_arrived: int = 0
    n_late: int = 0

    @property
    def settled(self) -> int | None:
        """The time before which everything is over for the streams that are not behind."""
        return None if self.clock is None else self.clock - self.feed.max_lateness

    def has_passed(self, due: int) -> bool:
        """Return whether the settled time is beyond a due."""
        return self.settled is not None and self.settled > due

    def has_passed_for(self, stream: str, due: int) -> bool:
        """Return whether a stream's own time is beyond a due.

        This holds if a reading of the stream after the due was applied: the settled time has moved at least as far
        beyond that reading as it was when the reading came.
        """
        return self.has_passed(due + self.lags.get(stream, 0))

    def take(self, arrived: Mapping[int, Sequence[Reading]], mark: int | None) -> list[Arrived]:
        """Let the clock go on; return the readings whose turn it is, by (event time, partition, offset).

        Set the lags: a stream has the lag of its last reading that is returned and not late.
        """
        self.settled_before = self.settled
        in_time = self._in_time(arrived)
        times = [reading.event_time for readings in arrived.values() for reading in readings]
        self.clock = max([time for time in (self.clock, mark, *times) if time is not None], default=None)
        self._note_earliest(times, mark)
        pending = sorted([*self.held, *in_time], key=lambda one: (one.reading.event_time, one.partition, one.number))
        newest = self._newest(pending)
        turns = [self._has_turn(one, newest[one.reading.stream]) for one in pending]
        self.held = [one for one, has_turn in zip(pending, turns, strict=True) if not has_turn]
        released = [one for one, has_turn in zip(pending, turns, strict=True) if has_turn]
        for one in released:
            if not self.is_late(one.reading):
                self.lags[one.reading.stream] = one.lag
        return released

    def is_late(self, reading: Reading) -> bool:
        """Return whether a reading is older than the last one of its stream."""
        last = self.known.get(reading.stream)
        return last is not None and reading.event_time < last.event_time

    def _in_time(self, arrived: Mapping[int, Sequence[Reading]]) -> list[Arrived]:
        """Return the arrived readings with their lags, without late ones, which are counted.

        Where readings are held, a reading is late if its own stream's newest reading so far, along its partition, has
        settled it.
        """
        in_time = []
        for partition, readings in arrived.items():
            newest = self._newest(self.held)
            for reading in readings:
                own_newest = newest.get(reading.stream, reading.event_time)
                if self.feed.max_lateness and reading.event_time < own_newest - self.feed.max_lateness:
                    self.n_late += 1
                    continue
                lag = 0 if self.settled_before is None else max(0, self.settled_before - reading.event_time)
                in_time.append(Arrived(partition, self.n_arrived, reading, lag))
                self.n_arrived += 1
                newest[reading.stream] = max(own_newest, reading.event_time)
        return in_time

    def _has_turn(self, one: Arrived, own_newest: int) -> bool:
        """Return whether a reading applies now, and is not held any longer."""
        if not self.feed.max_lateness:
            return True
        event_time = one.reading.event_time
        return own_newest - self.feed.max_lateness > event_time or self.has_passed(event_time + one.lag)

    def _newest(self, pending: Sequence[Arrived]) -> dict[str, int]:
        """Return the newest event time of each stream, among its last reading and readings that did not apply yet."""
        newest = {stream: last.event_time for stream, last in self.known.items()}
        for one in pending:
            stream, event_time = one.reading.stream, one.reading.event_time
            newest[stream] = max(newest.get(stream, event_time), event_time)
        return newest

    def _note_earliest(self, times: Sequence[int], mark: int | None) -> None:
        """Note the earliest event time; a reading before the settled time counts as if it were there.

        A batch of nothing else does not count.
        """
        if self.start is not None:
            return
        settled = self.settled_before
        moments = [*times] if mark is None else [*times, mark]
        if times and (settled is None or max(moments) >= settled):
            first = min(times) if settled is None else max(min(times), settled)
            self.earliest = first if self.earliest is None else min(self.earliest, first)
        elif self.earliest is None:
            self.earliest = self.clock
        if self.earliest is not None and (not self.feed.max_lateness or self.has_passed(self.earliest)):
            self.start = self.earliest
