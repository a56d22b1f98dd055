"""The engine of one feed in one shard: it applies commands, batches and restored rows to the feed's tables.

The engine only dispatches. The tables are in `feed_tables`, the effects of commands in `edits`, and the effects of
readings and of the clock in `batch`. The engine sends no replies and has no clock: `bmq.monitor` decides when a query
is due and how far the settled time is.
"""

from collections.abc import Iterator

from bmq.engines.event_columns import Events
from bmq.engines.feed.batch import advance
from bmq.engines.feed.crossing_records import to_crossings
from bmq.engines.feed.edits import put_query, remove_query, restore_query
from bmq.engines.feed.feed_tables import FeedTables
from bmq.engines.feed.slot_events import no_events
from bmq.engines.stage_result import StageResult
from bmq.records import NEVER, Crossings, Feed, Installation, Readings, Reason, RegionQuery, StreamRows, TrackingRows
from bmq.records.column_records import as_one


class FeedEngine:
    """The queries over one feed in one shard, without joins.

    Parameters
    ----------
    installation : what one reading may cost, and whose queries these are.

    Attributes
    ----------
    tables : what is kept of the feed; for code that counts, compares or stores it.
    """

    def __init__(self, feed: Feed, installation: Installation) -> None:
        self.tables = FeedTables(feed, installation)

    # -- commands -----------------------------------------------------------------------------------------

    def put(self, query: RegionQuery, reason: Reason, due: int = NEVER) -> Crossings | None:
        """Register or replace a query; return the crossings that this causes at once; None: no crossing.

        A stream that is a member before and after stays a member, silent or not, and has no event. Cost: O(log n) for a
        region with few streams in its first dimension's range, plus the streams in that range.
        """
        if not self.tables.streams.any_seen:
            self.restore(query, due)
            return None
        return self._at_rest(put_query(self.tables, query, reason, due))

    def remove(self, query_id: str, reason: Reason, *, emitted_as: RegionQuery | None = None) -> Crossings | None:
        """Remove a query; return a leave for each member that is not silent; None: no leave.

        Parameters
        ----------
        emitted_as : the definition that the events carry; None: the removed definition. If an edit moves a query to
            another feed, this is the new version.
        """
        crossings = self._at_rest([remove_query(self.tables, query_id, reason)], emitted_as)
        self.drop(query_id)
        return crossings

    def drop(self, query_id: str) -> None:
        """Remove a query without events."""
        self.tables.forget(query_id)

    def set_due(self, query_id: str, due: int) -> None:
        """Set when a query ends, epoch ms."""
        self.tables.dues.set(self.tables.queries.slot(query_id), due)

    def _at_rest(self, parts: list[Events], emitted_as: RegionQuery | None = None) -> Crossings | None:
        events = as_one([part for part in parts if len(part)] or [no_events(self.tables.n_dims)])
        return to_crossings(self.tables, events, None, None, emitted_as) if len(events) else None

    # -- readings -----------------------------------------------------------------------------------------

    def advance(self, readings: Readings | None, settled: int) -> StageResult:
        """Apply readings, given ascending by (partition, offset), and move the settled time; see `batch.advance`."""
        return advance(self.tables, readings, settled)

    # -- state --------------------------------------------------------------------------------------------

    def restore(self, query: RegionQuery, due: int = NEVER) -> None:
        """Register or replace a query without events, for a replica that catches up."""
        restore_query(self.tables, query, due)

    def restore_streams(self, rows: StreamRows) -> None:
        """Set streams without events, for a replica that catches up."""
        self.tables.put_streams(rows)

    def restore_trackings(self, rows: TrackingRows) -> None:
        """Set trackings without events, for a replica that catches up."""
        self.tables.trackings.put_rows(rows, self.tables.queries.slot, self.tables.streams.slots_of)

    def take_touched_streams(self) -> StreamRows:
        """Return the streams changed since the last call, as they are now."""
        return self.tables.with_attributes(self.tables.streams.take_touched())

    def take_touched_trackings(self) -> TrackingRows:
        """Return the trackings changed since the last call, as they are now."""
        return self.tables.trackings.take_touched(self.tables.query_id, self.tables.streams.ids_of)

    def stream_pages(self, size: int) -> Iterator[StreamRows]:
        """Yield all streams that are known, ``size`` at a time."""
        slots = self.tables.streams.seen_slots()
        for begin in range(0, slots.size, size):
            yield self.tables.with_attributes(self.tables.streams.rows_of(slots[begin : begin + size]))

    def tracking_pages(self, size: int) -> Iterator[TrackingRows]:
        """Yield all trackings, ``size`` at a time."""
        return self.tables.trackings.snapshot(self.tables.query_id, self.tables.streams.ids_of, size)

    def _check(self) -> None:
        """State every invariant; for tests."""
        self.tables._check()
