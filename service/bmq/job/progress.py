"""Spark's progress reports to the service's metrics: counters, batch times, lag.

PySpark's own listener copies each report field by field, and each field costs calls between Python and the JVM: half
a core at two or three batches a second. So the listener here takes the report as one text.
"""

import json
import threading
import time
from collections.abc import Mapping
from typing import Any, cast

import msgspec
from py4j.java_gateway import JavaObject
from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryListener

from bmq.job.idle import IdleFeeds
from bmq.job.pipeline import OBSERVATION
from bmq.job.plan import Plan
from bmq.metrics.counters import ShardCounters
from bmq.metrics.metrics import Metrics

_decode = msgspec.json.Decoder(ShardCounters).decode


class ProgressListener:
    """Updates the metrics and `IdleFeeds` after each batch; Spark calls it on a thread of its own.

    batch_ended : set whenever a batch has ended.
    """

    def __init__(self, metrics: Metrics, plan: Plan, idle_feeds: IdleFeeds) -> None:
        self._metrics = metrics
        self._idle_feeds = idle_feeds
        self._feed_by_topic = plan.feed_by_topic()
        self.batch_ended = threading.Event()

    def register(self, spark: SparkSession) -> None:
        """Have Spark call this listener from now on."""
        spark.streams.addListener(cast(StreamingQueryListener, self))

    @property
    def _jlistener(self) -> JavaObject:
        """Return the listener as the JVM knows it: all that `addListener` asks of its argument."""
        jvm: Any = SparkContext._jvm
        return jvm.PythonStreamingQueryListenerWrapper(_JavaListener(self))

    def note_batch(self, report: Mapping[str, Any]) -> None:
        """Note a batch's counters, time and lag, of the report in Spark's JSON form."""
        self._metrics.health.idle()
        self.batch_ended.set()
        observed = report.get("observedMetrics", {}).get(OBSERVATION)
        if observed is not None:
            batch = [_decode(counters) for counters in observed.values() if counters is not None]
            self._metrics.add(batch)
            self._idle_feeds.note_batch(batch, time.monotonic_ns() // 1_000_000)
            self._metrics.batch(report["durationMs"]["triggerExecution"] / 1000)
        for source in report["sources"]:
            # A batch that runs again asks no broker for the latest offsets.
            self._note_lag(source.get("latestOffset"), source.get("endOffset"))

    def note_idle(self) -> None:
        """Note that no batch is running."""
        self._metrics.health.idle()
        self.batch_ended.set()

    def note_end(self) -> None:
        """Note that the streaming query no longer runs."""
        self.batch_ended.set()
        self._metrics.ended()

    def _note_lag(self, latest: Mapping[str, Any] | None, end: Mapping[str, Any] | None) -> None:
        if not latest or not end:
            return
        for topic, partitions in latest.items():
            feed = self._feed_by_topic.get(topic)
            if feed is None:
                continue
            for partition, offset in partitions.items():
                read = end.get(topic, {}).get(partition, 0)
                number = feed.partition_of(topic, int(partition))
                self._metrics.lag(feed.name, number, max(0, offset - read))


class _JavaListener:
    """What the JVM calls."""

    def __init__(self, listener: ProgressListener) -> None:
        self._listener = listener

    def onQueryStarted(self, event: JavaObject) -> None:
        """Do nothing: the service itself sets the metric that it runs."""

    def onQueryProgress(self, event: JavaObject) -> None:
        self._listener.note_batch(json.loads(event.progress().json()))

    def onQueryIdle(self, event: JavaObject) -> None:
        self._listener.note_idle()

    def onQueryTerminated(self, event: JavaObject) -> None:
        self._listener.note_end()

    class Java:
        implements = ("org.apache.spark.sql.streaming.PythonStreamingQueryListener",)
