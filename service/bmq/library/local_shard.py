"""One shard of the engine in this process: what `Monitor` and `bmq backtest` have in common.

    query id, JSON ─► command ─► monitor.Monitor ─┐
    readings, as columns ──────► (one shard) ─────┴─► events, as columns

Makes the batches of the engine. Knows no tables.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from bmq.engines.stage_result import StageResult
from bmq.errors import ControlCode, ControlError
from bmq.monitor.monitor import Monitor as Shard
from bmq.records import NEVER, Clock, Command, Crossings, Delete, Installation, JoinedPairs, Readings, Status
from bmq.wire.control import parse_command

# The monitor notes what changed for a replica, which the library does not have. More often costs time for each stream
# that moved; seldom, and a notebook that puts a million queries keeps each definition twice.
STEPS_BETWEEN_DELTAS = 1_000

Events = list[Crossings | JoinedPairs]


@dataclass(frozen=True, slots=True)
class Counts:
    """What a `Monitor` has counted since it was made.

    Attributes
    ----------
    readings : rows that were readings.
    bad : rows that were not, with ``bad_readings="drop"``.
    late : readings that changed nothing, because their stream was further.
    suppressed : events that an option of their query suppressed.
    events : events so far.
    """

    readings: int = 0
    bad: int = 0
    late: int = 0
    suppressed: int = 0
    events: int = 0


class LocalShard:
    """Standing queries over columns of readings, as the only shard of an installation.

    Parameters
    ----------
    installation : the feeds, and the rules for definitions.
    """

    def __init__(self, installation: Installation) -> None:
        self._installation = installation
        self._shard = Shard(installation)
        self._has_joins = any(feed.join for feed in installation.feeds.values())
        self._events: Events = []
        self._query_ids: set[str] = set()
        self._expired: list[str] = []
        self._counts = Counts()
        self._next_offset = self._n_steps = 0

    def apply(self, query_id: str, definition: bytes | None) -> str:
        """Apply a command (None: delete the query); return "accepted", "unchanged" or "deleted".

        Raises
        ------
        ControlError
            The command is refused; its ``code`` and message are those of the service's reply.
        """
        offset, self._next_offset = self._next_offset, self._next_offset + 1
        command: Command = parse_command(
            query_id.encode(errors="surrogatepass"), definition, offset, self._installation
        )
        result = self._shard.apply([command])
        answer, *others = result.replies
        if answer.status is Status.REJECTED:
            assert answer.code is not None
            raise ControlError(ControlCode(answer.code), answer.message or "")
        result.replies = others
        if isinstance(command, Delete):
            self._query_ids.discard(query_id)
        else:
            self._query_ids.add(query_id)
        self._note(result)
        self._step()
        return answer.status.value

    def advance(
        self, readings: Mapping[str, Readings], marks: Mapping[str, int], clocks: Mapping[str, Clock] | None = None
    ) -> int:
        """Apply one batch of readings; return how many events it has.

        Parameters
        ----------
        readings : by feed; the columns must stay as they are if the feed holds readings back or takes part in joins.
        marks : how far the event time of a feed has come although no reading says so, epoch ms.
        clocks : the earliest and latest event time of the batch of a feed, if it has more readings than these: the
            others are in other shards.
        """
        n_events = self._counts.events
        for name in self._installation.feeds:
            clock = (clocks or {}).get(name) or _clock_of(readings.get(name), marks.get(name, NEVER))
            self._note(self._shard.advance(name, readings.get(name), clock))
        if self._has_joins:
            feeds = self._installation.feeds
            self._note(self._shard.join({name: some for name, some in readings.items() if feeds[name].join}))
        self._counts = replace(self._counts, readings=self._counts.readings + sum(map(len, readings.values())))
        self._step()
        return self._counts.events - n_events

    def events(self) -> Events:
        """Return the events since the last call, in order, and forget them."""
        events, self._events = self._events, []
        return events

    def expired(self) -> list[str]:
        """Return the queries that ended by their `ttl` or `expires_at` since the last call, in order."""
        expired, self._expired = self._expired, []
        return expired

    @property
    def query_ids(self) -> list[str]:
        """The ids of the registered queries, sorted."""
        return sorted(self._query_ids)

    @property
    def n_streams(self) -> int:
        """How many streams are known, of all feeds."""
        return sum(self._shard.n_streams().values())

    @property
    def n_held(self) -> int:
        """How many readings are held back by the `max_lateness` of their feed."""
        return self._shard.n_held()

    @property
    def counts(self) -> Counts:
        """What was counted so far; `bad` is for the caller to count."""
        return self._counts

    def _note(self, result: StageResult) -> None:
        """Keep what one step of a batch gave."""
        self._events += [*result.crossings, *result.pairs]
        expired = [reply.query_id for reply in result.replies if reply.status is Status.EXPIRED]
        self._expired += expired
        self._query_ids.difference_update(expired)
        counts = self._counts
        self._counts = replace(
            counts,
            late=counts.late + result.n_late,
            suppressed=counts.suppressed + result.n_suppressed,
            events=counts.events + sum(map(len, result.crossings)) + sum(map(len, result.pairs)),
        )

    def _step(self) -> None:
        self._n_steps += 1
        if self._n_steps % STEPS_BETWEEN_DELTAS == 0:
            self._shard.take_delta()


def _clock_of(readings: Readings | None, mark: int) -> Clock:
    """Return the earliest and latest event time of a batch; a mark counts for the latest only."""
    if readings is None:
        return Clock(mark)
    return Clock(max(int(readings.event_times.max()), mark), int(readings.event_times.min()))
