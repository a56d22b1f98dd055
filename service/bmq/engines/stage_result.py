"""The effects of commands, readings and the clock on the queries of one shard.

    engine (events, ended queries, counts) ─► stage (puts for replicas) ─► monitor (replies) ─► job

An engine makes the result, and each layer above adds its own part. All layers use this one class, so each field is
named once.
"""

from dataclasses import dataclass, field

from bmq.records import Crossings, JoinedPairs, Put, Query, Reply


@dataclass(slots=True)
class StageResult:
    """Events, ended queries, replies and counts.

    Attributes
    ----------
    crossings : events of queries over one feed, in output order (docs/semantics.md, order).
    pairs : events of joins, in output order.
    expired : queries that ended.
    puts : for replicas: the accepted put with its due, or the queries whose `ttl` runs from now on.
    replies : for each command that gets a reply, and for each query that ended.
    n_late : readings that were dropped because they were late.
    max_lag_ms : the largest lag of an applied reading.
    n_suppressed : events that an option of their query, or the limit of passes, suppressed.
    visits : index entries visited for border and transition queries, and candidates tested for joins.
    level_visits : index entries visited for match and select queries.
    """

    crossings: list[Crossings] = field(default_factory=list)
    pairs: list[JoinedPairs] = field(default_factory=list)
    expired: list[Query] = field(default_factory=list)
    puts: list[Put[Query]] = field(default_factory=list)
    replies: list[Reply] = field(default_factory=list)
    n_late: int = 0
    max_lag_ms: int = 0
    n_suppressed: int = 0
    visits: int = 0
    level_visits: int = 0

    def add(self, other: "StageResult") -> None:
        """Append the lists of another result, and add its counts."""
        self.crossings += other.crossings
        self.pairs += other.pairs
        self.expired += other.expired
        self.puts += other.puts
        self.replies += other.replies
        self.n_late += other.n_late
        self.max_lag_ms = max(self.max_lag_ms, other.max_lag_ms)
        self.n_suppressed += other.n_suppressed
        self.visits += other.visits
        self.level_visits += other.level_visits
