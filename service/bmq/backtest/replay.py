"""Applies recorded readings to queries: pieces to batches of the engine, and the events to sinks."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from bmq.backtest.pieces import Piece, Sink
from bmq.errors import ControlError, ServiceError
from bmq.library.local_shard import Counts, LocalShard
from bmq.records import NEVER, Clock, Readings
from bmq.records.column_records import concat, take

_DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class Moments:
    """When something happens that no reading causes, epoch ms.

    Attributes
    ----------
    put_at : the queries are put before the first reading of this time or later; None: before all readings.
    clock_end : how far the clock comes after the last reading; None: not further.
    """

    put_at: int | None = None
    clock_end: int | None = None


@dataclass(slots=True)
class Outcome:
    """What a replay counted.

    Attributes
    ----------
    counts : of the engine, and `bad`.
    bad : reason -> number of rows or records that are not readings.
    first, last : the least and the greatest event time since the queries were put, epoch ms; None: no reading since.
    expired : queries that ended by their `ttl` or `expires_at`.
    n_streams : how many streams are known at the end.
    n_held : readings that `max_lateness` still holds back at the end.
    """

    counts: Counts = field(default_factory=Counts)
    bad: Counter[str] = field(default_factory=Counter)
    first: int | None = None
    last: int | None = None
    expired: list[str] = field(default_factory=list)
    n_streams: int = 0
    n_held: int = 0

    @property
    def days(self) -> float:
        """The length of the history since the queries were put, in days."""
        return 0.0 if self.first is None or self.last is None else (self.last - self.first) / _DAY_MS


class Replay:
    """One run of recorded readings of one feed.

    Parameters
    ----------
    shard : an engine without queries.
    feed : the name of the feed of all readings.
    definitions : query id -> definition, JSON.
    sinks : each gets all events. The caller finishes or abandons them.
    """

    def __init__(
        self,
        shard: LocalShard,
        feed: str,
        definitions: Mapping[str, bytes],
        moments: Moments,
        sinks: Sequence[Sink] = (),
    ) -> None:
        self._shard = shard
        self._feed = feed
        self._definitions = definitions
        self._moments = moments
        self._sinks = sinks
        self._is_put = False
        self._latest = NEVER
        self._outcome = Outcome()

    def run(self, pieces: Iterable[Piece], note: Callable[[int], None]) -> Outcome:
        """Apply all pieces; return what was counted.

        Parameters
        ----------
        note : called with `Piece.done` after each piece.

        Raises
        ------
        ServiceError
            The service would reject a definition; the message names all of these. Or a piece cannot be read, a sink
            cannot write, or the clock would end before the last reading.
        """
        if self._moments.put_at is None:
            self._put()
        for piece in pieces:
            self._outcome.bad.update(piece.bad)
            if piece.clock is not None:
                self._apply_part(piece.readings, piece.clock)
            elif piece.readings is not None:
                self._apply(piece.readings)
            note(piece.done)
        if not self._is_put:
            self._put()
        if self._moments.clock_end is not None:
            self._check_clock_end(self._moments.clock_end)
            self._shard.advance({}, {self._feed: self._moments.clock_end})
            self._hand_out()
        self._outcome.counts = replace(self._shard.counts, bad=self._outcome.bad.total())
        self._outcome.expired = self._shard.expired()
        self._outcome.n_streams = self._shard.n_streams
        self._outcome.n_held = self._shard.n_held
        return self._outcome

    def _check_clock_end(self, clock_end: int) -> None:
        if clock_end < self._latest:
            raise ServiceError(
                f"--clock-end is {clock_end} in epoch milliseconds, but the latest event time of the readings is "
                f"{self._latest}. Give a later time; a number counts milliseconds and not seconds."
            )

    def _apply(self, readings: Readings) -> None:
        self._latest = max(self._latest, int(readings.event_times.max()))
        if not self._is_put:
            assert self._moments.put_at is not None
            is_after = readings.event_times >= self._moments.put_at
            first = int(np.argmax(is_after)) if is_after.any() else len(readings)
            if first:
                self._shard.advance({self._feed: _some(readings, slice(0, first))}, {})
            if first == len(readings):
                return
            self._put()
            readings = _some(readings, slice(first, None))
        self._shard.advance({self._feed: readings}, {})
        self._note_times(readings)
        self._hand_out()

    def _apply_part(self, readings: Readings | None, clock: Clock) -> None:
        """Apply the readings of this shard in a batch, if there are some; the queries are put."""
        assert self._is_put
        self._latest = max(self._latest, clock.time)
        self._shard.advance({} if readings is None else {self._feed: readings}, {}, {self._feed: clock})
        self._hand_out()

    def _put(self) -> None:
        self._is_put = True
        put_all(self._shard, self._definitions)
        self._hand_out()

    def _note_times(self, readings: Readings) -> None:
        outcome = self._outcome
        first, last = int(readings.event_times.min()), int(readings.event_times.max())
        outcome.first = first if outcome.first is None else min(outcome.first, first)
        outcome.last = last if outcome.last is None else max(outcome.last, last)

    def _hand_out(self) -> None:
        events = self._shard.events()
        if events:
            for sink in self._sinks:
                sink.write(events)


def _some(readings: Readings, rows: slice) -> Readings:
    """Return a range of readings in columns of their own: kernels are compiled for contiguous columns."""
    return concat([take(readings, rows)])


def put_all(shard: LocalShard, definitions: Mapping[str, bytes]) -> None:
    """Put all queries.

    Raises
    ------
    ServiceError
        The service would reject some of the definitions; the message names each of them with the reason.
    """
    rejected = []
    for query_id, definition in definitions.items():
        try:
            shard.apply(query_id, definition)
        except ControlError as error:
            rejected.append(f"{query_id}: {error.code.value}: {error}")
    if rejected:
        lines = "\n".join(rejected)
        raise ServiceError(
            f"The service would reject {len(rejected)} of {len(definitions)} definitions. Correct them:\n{lines}"
        )
