"""What one batch does to one shard's monitor: commands, then readings feed by feed, then the joins of them."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from bmq.job.received import Frames
from bmq.monitor.monitor import Monitor
from bmq.records import NEVER, Clock, Crossings, Feed, JoinedPairs, Reply, Sign
from bmq.records.column_records import concat

# What finds events, as the metrics name it: of border and transition queries, of match and select ones, of joins.
BORDER, LEVELS, JOINS = "border", "levels", "joins"


@dataclass(slots=True)
class Outcome:
    """What one batch did to one shard.

    late, suppressed : feed -> readings that changed nothing, events that an option of their query keeps back.
    visits, useful : engine -> index entries looked at for readings, and those of them that became events.
    """

    replies: list[Reply]
    crossings: list[Crossings]
    pairs: list[JoinedPairs] = field(default_factory=list)
    late: dict[str, int] = field(default_factory=dict)
    suppressed: dict[str, int] = field(default_factory=dict)
    visits: Counter[str] = field(default_factory=Counter)
    useful: Counter[str] = field(default_factory=Counter)


def run_batch(monitor: Monitor, frames: Frames, feeds: Mapping[str, Feed]) -> Outcome:
    """Apply commands, then readings; both in order.

    Every feed advances in every batch, one without readings too: its clock may have moved, and a command may have
    begun what is due already. So do the joins, where there are feeds that take part in them.
    """
    applied = monitor.apply(frames.commands)
    outcome = Outcome(applied.replies, applied.crossings, applied.pairs)
    for feed in feeds:
        parts = frames.readings.get(feed)
        readings = None if parts is None else concat(parts)
        advanced = monitor.advance(feed, readings, frames.clocks.get(feed, Clock()))
        outcome.replies.extend(advanced.replies)
        if advanced.crossings is not None:
            outcome.crossings.append(advanced.crossings)
            n_levels = _n_levels(advanced.crossings)
            outcome.useful[BORDER] += len(advanced.crossings) - n_levels
            outcome.useful[LEVELS] += n_levels
        outcome.late[feed] = advanced.n_late + frames.late.get(feed, 0)
        outcome.suppressed[feed] = advanced.n_suppressed
        outcome.visits[BORDER] += advanced.visits
        outcome.visits[LEVELS] += advanced.level_visits
    if any(feed.join for feed in feeds.values()):
        joined = monitor.join({feed: concat(parts) for feed, parts in frames.join_readings.items()})
        outcome.replies.extend(joined.replies)
        outcome.pairs.extend(joined.pairs)
        outcome.visits[JOINS] += joined.visits
        outcome.useful[JOINS] += sum(map(len, joined.pairs))
    return outcome


def _n_levels(crossings: Crossings) -> int:
    """Return how many of the events are of match and select queries: those without a sign that no transition began."""
    is_level = crossings.signs == Sign.NONE
    if crossings.began is not None:
        is_level &= crossings.began == NEVER
    return int(np.count_nonzero(is_level))
