"""How noisy queries are over a history: counts the events of queries and of their variants.

Knows the numbers of `variants` and the columns of events. A stream *returns* if it enters a region again within a time
after it left; each return is noise that an option could suppress.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bmq.backtest.pieces import Piece, Source
from bmq.backtest.replay import Outcome
from bmq.backtest.variants import Variant, number_of
from bmq.library.local_shard import Events
from bmq.records import Crossings, Family, Int64s, Sign, UInt64s, are_of_family
from bmq.wire.event_pieces import used_queries


@dataclass(frozen=True, slots=True)
class QueryNoise:
    """The forecast of one query.

    Attributes
    ----------
    events : how many the history has.
    per_stream_day : events of a stream in a day; None: the history has no length.
    returns : share of its `+` that are returns, 0 to 1; None: it has no `+`.
    left : for each variant the share of the events that is left, 0 and up; None: the query cannot have the option, or
        has no events. It is above 1 if the query has the option already in a larger size.
    """

    query_id: str
    events: int
    per_stream_day: float | None
    returns: float | None
    left: tuple[float | None, ...]


class StreamsSeen:
    """A `Source` that counts the streams of another one.

    Parameters
    ----------
    source : the other one.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._hashes: UInt64s = np.zeros(0, dtype=np.uint64)

    @property
    def total(self) -> int:
        """As that of the source."""
        return self._source.total

    def pieces(self) -> Iterator[Piece]:
        """Yield the pieces of the source."""
        for piece in self._source.pieces():
            if piece.readings is not None:
                self._hashes = np.union1d(self._hashes, piece.readings.ids.hashes)
            yield piece

    def __len__(self) -> int:
        """Return how many streams there were; two whose 64-bit hashes are equal count as one."""
        return self._hashes.size


class NoiseCounts:
    """Counts the events of all numbers; a `pieces.Sink`.

    It keeps the last `-` of each query and stream, some 150 bytes each.

    Parameters
    ----------
    query_ids : in the order of their numbers.
    variants : that the numbers stand for.
    returns_within_ms : the longest absence of a return.
    """

    def __init__(self, query_ids: Sequence[str], variants: Sequence[Variant], returns_within_ms: int) -> None:
        self._query_ids = query_ids
        self._width = 1 + len(variants)
        self._within = returns_within_ms
        self._events: Int64s = np.zeros(len(query_ids) * self._width, dtype=np.int64)
        self._n_entered: Int64s = np.zeros(len(query_ids), dtype=np.int64)
        self._n_returns: Int64s = np.zeros(len(query_ids), dtype=np.int64)
        self._left_at: dict[tuple[int, bytes], int] = {}

    def write(self, events: Events) -> None:
        """Count the events of one step, which are in order for each query and stream."""
        for some in events:
            assert isinstance(some, Crossings)  # a backtest of one feed has no joins
            queries, rows = used_queries(some.queries, some.query_rows)
            numbers = np.array([number_of(query.query_id) for query in queries], dtype=np.int64)[rows]
            found, counts = np.unique(numbers, return_counts=True)
            self._events[found] += counts
            self._note_returns(some, numbers)

    def finish(self) -> None:
        """Do nothing: the counts are complete."""

    def abandon(self) -> None:
        """Do nothing: there is nothing to delete."""

    def forecast(
        self, outcome: Outcome, n_streams: int, definitions: Mapping[str, bytes], named: Mapping[str, int]
    ) -> list[QueryNoise]:
        """Return the forecast of each query, the noisiest first.

        Parameters
        ----------
        n_streams : how many the history has.
        definitions : by query id in the run; a variant without one was not put.
        named : query id -> how many streams a query names; absent: it watches all.
        """
        rows = []
        put = set(map(number_of, definitions))
        for row, query_id in enumerate(self._query_ids):
            first = row * self._width
            events, *of_variants = self._events[first : first + self._width].tolist()
            stream_days = min(named.get(query_id, n_streams), n_streams) * outcome.days
            n_entered = int(self._n_entered[row])
            rows.append(
                QueryNoise(
                    query_id,
                    events,
                    events / stream_days if stream_days else None,
                    int(self._n_returns[row]) / n_entered if n_entered else None,
                    tuple(
                        n / events if events and number in put else None
                        for number, n in enumerate(of_variants, first + 1)
                    ),
                )
            )
        return sorted(rows, key=lambda row: (-row.events, row.query_id))

    def _note_returns(self, events: Crossings, numbers: npt.NDArray[np.int64]) -> None:
        of_queries = (numbers % self._width == 0) & are_of_family(events.kinds, Family.CROSSING)
        rows = np.flatnonzero(of_queries)
        starts, texts, left_at = events.ids.starts, events.ids.bytes, self._left_at
        columns = (
            (numbers[rows] // self._width).tolist(),
            starts[rows].tolist(),
            starts[rows + 1].tolist(),
            events.signs[rows].tolist(),
            events.event_times[rows].tolist(),
        )
        for row, begin, end, sign, time in zip(*columns, strict=True):
            tracking = row, texts[begin:end].tobytes()
            if sign == Sign.LEFT:
                left_at[tracking] = time
                continue
            self._n_entered[row] += 1
            before = left_at.pop(tracking, None)
            if before is not None and time - before <= self._within:
                self._n_returns[row] += 1
