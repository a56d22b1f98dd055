"""When queries end: `ttl`, `expires_at`, and queries whose `ttl` cannot run yet.

    put ─┬─ expires_at ───────────────────► due
         ├─ ttl, and a feed has a clock ──► due = latest clock of its feeds + ttl
         └─ ttl, and no feed has one ─────► pending ─► due = earliest first reading of its feeds + ttl

A query reads one feed, or two if it is a join. The same rules hold for both: of two clocks, the later one counts. This
module knows clocks and definitions. The engines keep the dues and fire them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Generic, TypeVar

from bmq.monitor.clock import FeedClock
from bmq.records import NEVER, JoinQuery, Put, RegionQuery

FeedNames = tuple[str, ...]  # what a query reads: `query.feeds`
OwnQuery = TypeVar("OwnQuery", RegionQuery, JoinQuery)


class Lifetimes(Generic[OwnQuery]):
    """The life times of the queries of one stage.

    Parameters
    ----------
    clocks : of all feeds, by name; only read here.
    """

    def __init__(self, clocks: Mapping[str, FeedClock]) -> None:
        self._clocks = clocks
        self._pending: dict[FeedNames, dict[str, OwnQuery]] = {}  # by feeds, then by query id; no inner dict is empty

    def settled(self, feeds: FeedNames) -> int:
        """Return the epoch ms before which every due of queries over ``feeds`` has fired; NEVER: no due has fired."""
        return max(self._clocks[name].settled for name in feeds)

    def unless_over(self, query: OwnQuery) -> OwnQuery:
        """Return the query, disabled if its `expires_at` has passed: it still replaces a query, but has no members."""
        is_over = query.expires_at is not None and self._time(query.feeds) > query.expires_at
        return replace(query, enabled=False) if is_over else query

    def is_in_force(self, query: OwnQuery, registered: OwnQuery) -> bool:
        """Return whether ``registered`` is the same definition as ``query``, whatever their versions are."""
        # A query whose `expires_at` lies between the settled time and the clock is over but still registered. It is
        # registered as disabled if it was over when it was put.
        return replace(registered, version=query.version) in (query, self.unless_over(query))

    def due(self, query: OwnQuery) -> int:
        """Return when a query that is put now ends, epoch ms; NEVER: it does not end, or it will be pending."""
        if query.expires_at is not None:
            return query.expires_at
        time = self._time(query.feeds)
        return NEVER if query.ttl_ms is None or time == NEVER else time + query.ttl_ms

    def register(self, query: OwnQuery, due: int) -> None:
        """Make a query pending if its `ttl` does not run yet, and not pending otherwise."""
        if due == NEVER and query.ttl_ms is not None:
            self._pending.setdefault(query.feeds, {})[query.query_id] = query
        else:
            self.forget(query.query_id, query.feeds)

    def forget(self, query_id: str, feeds: FeedNames) -> None:
        """Forget a query over ``feeds``, if it is pending."""
        pending = self._pending.get(feeds)
        if pending is not None:
            pending.pop(query_id, None)
            if not pending:
                del self._pending[feeds]

    def start(self, of_feeds: Iterable[FeedNames]) -> list[Put[OwnQuery]]:
        """Start the `ttl` of the pending queries over any of ``of_feeds`` with a first reading; return their puts.

        Returns
        -------
        list
            The puts, with the dues, for replicas; by query id.
        """
        started: list[Put[OwnQuery]] = []
        for feeds in [feeds for feeds in of_feeds if feeds in self._pending]:
            starts = [self._clocks[name].start for name in feeds]
            known = [start for start in starts if start != NEVER]
            if known:
                for query in self._pending.pop(feeds).values():
                    assert query.ttl_ms is not None
                    started.append(Put(query.version - 1, query, min(known) + query.ttl_ms))
        return sorted(started, key=lambda put: put.query.query_id)

    def pending(self, feeds: FeedNames) -> set[str]:
        """Return the ids of the pending queries over ``feeds``."""
        return set(self._pending.get(feeds, ()))

    def _time(self, feeds: FeedNames) -> int:
        return max(self._clocks[name].now.time for name in feeds)
