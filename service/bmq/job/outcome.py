"""The work of one batch on one shard's monitor: commands, then readings feed by feed, then joins."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from bmq.engines.stage_result import StageResult
from bmq.job.received import Frames
from bmq.monitor.monitor import Monitor
from bmq.records import Clock, Crossings, Family, Feed, JoinedPairs, Reply, are_of_family
from bmq.records.column_records import concat

# The engines by their names in the metrics: of border and transition queries, of match and select queries, of joins.
BORDER, LEVELS, JOINS = "border", "levels", "joins"


@dataclass(slots=True)
class ShardResult:
    """The results of one batch in one shard, step by step.

    Attributes
    ----------
    commands : the immediate results of the commands.
    feeds : feed -> the results of its readings and its clock, for every feed.
    joins : the results of the readings and clocks of all feeds in joins; None: no feed takes part in joins.
    """

    commands: StageResult
    feeds: dict[str, StageResult] = field(default_factory=dict)
    joins: StageResult | None = None

    @property
    def replies(self) -> list[Reply]:
        """The replies of all steps, in order."""
        return [reply for step in self._steps() for reply in step.replies]

    @property
    def crossings(self) -> list[Crossings]:
        """The events of queries over one feed of all steps, in order."""
        return [crossings for step in self._steps() for crossings in step.crossings]

    @property
    def pairs(self) -> list[JoinedPairs]:
        """The events of joins of all steps, in order."""
        return [pairs for step in self._steps() for pairs in step.pairs]

    @property
    def late(self) -> dict[str, int]:
        """Feed -> number of readings that changed nothing because they were late."""
        return {feed: result.n_late for feed, result in self.feeds.items()}

    @property
    def max_lags(self) -> dict[str, int]:
        """Feed -> the largest lag of its applied readings, ms."""
        return {feed: result.max_lag_ms for feed, result in self.feeds.items()}

    @property
    def suppressed(self) -> dict[str, int]:
        """Feed -> number of events that an option of their query suppressed."""
        return {feed: result.n_suppressed for feed, result in self.feeds.items()}

    @property
    def visits(self) -> Counter[str]:
        """Engine -> number of index entries that it visited for readings."""
        visits: Counter[str] = Counter()
        for result in self.feeds.values():
            visits[BORDER] += result.visits
            visits[LEVELS] += result.level_visits
        if self.joins is not None:
            visits[JOINS] += self.joins.visits
        return visits

    @property
    def useful(self) -> Counter[str]:
        """Engine -> how many of the visited index entries became events."""
        useful: Counter[str] = Counter()
        for result in self.feeds.values():
            for crossings in result.crossings:
                n_levels = _n_levels(crossings)
                useful[BORDER] += len(crossings) - n_levels
                useful[LEVELS] += n_levels
        if self.joins is not None:
            useful[JOINS] += sum(map(len, self.joins.pairs))
        return useful

    def _steps(self) -> Iterator[StageResult]:
        yield self.commands
        yield from self.feeds.values()
        if self.joins is not None:
            yield self.joins


def run_batch(monitor: Monitor, frames: Frames, feeds: Mapping[str, Feed]) -> ShardResult:
    """Apply commands, then readings; both in order.

    Every feed advances in every batch, even without readings: its clock may have moved, and a command may have started
    a timer that is already due. The joins advance in every batch, too, if any feed takes part in joins.
    """
    result = ShardResult(monitor.apply(frames.commands))
    for feed in feeds:
        parts = frames.readings.get(feed)
        readings = None if parts is None else concat(parts)
        result.feeds[feed] = monitor.advance(feed, readings, frames.clocks.get(feed, Clock()))
    if any(feed.join for feed in feeds.values()):
        result.joins = monitor.join({feed: concat(parts) for feed, parts in frames.join_readings.items()})
    return result


def _n_levels(crossings: Crossings) -> int:
    """Return how many of the events belong to match and select queries."""
    return int(np.count_nonzero(are_of_family(crossings.kinds, Family.LEVEL)))
