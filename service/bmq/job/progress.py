"""Spark's progress reports to the service's metrics: counters, batch times, lag."""

import json
import threading
import time

import msgspec
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from bmq.job.idle import IdleFeeds
from bmq.job.pipeline import OBSERVATION
from bmq.job.plan import Plan
from bmq.metrics.counters import ShardCounters
from bmq.metrics.metrics import Metrics

_decode = msgspec.json.Decoder(ShardCounters).decode


class ProgressListener(StreamingQueryListener):
    """Updates the metrics and `IdleFeeds` after each batch; Spark calls it on a thread of its own.

    batch_ended : set whenever a batch has ended.
    """

    def __init__(self, metrics: Metrics, plan: Plan, idle_feeds: IdleFeeds) -> None:
        self._metrics = metrics
        self._idle_feeds = idle_feeds
        self._feed_by_topic = {feed.topic: name for name, feed in plan.feeds.items()}
        self.batch_ended = threading.Event()

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """Do nothing: the service itself sets the metric that it runs."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        """Note a batch's counters, time and lag."""
        self.batch_ended.set()
        progress = event.progress
        observed = progress.observedMetrics.get(OBSERVATION)
        if observed is not None:
            batch = [_decode(counters) for counters in observed if counters is not None]
            self._metrics.add(batch)
            self._idle_feeds.note_batch(batch, time.monotonic_ns() // 1_000_000)
            self._metrics.batch(progress.durationMs["triggerExecution"] / 1000)
        for source in progress.sources:
            self._note_lag(source.latestOffset, source.endOffset)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        """Note that no batch is running."""
        self.batch_ended.set()

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """Note that the streaming query no longer runs."""
        self.batch_ended.set()
        self._metrics.ended()

    def _note_lag(self, latest: str | None, end: str | None) -> None:
        if not latest or not end:
            return
        ends = json.loads(end)
        for topic, partitions in json.loads(latest).items():
            feed = self._feed_by_topic.get(topic)
            if feed is None:
                continue
            for partition, offset in partitions.items():
                read = ends.get(topic, {}).get(partition, 0)
                self._metrics.lag(feed, int(partition), max(0, offset - read))
