"""The Prometheus side of the counters: names, help texts and buckets.

Knows how to show `counters.Totals`; knows neither Spark nor the code that counts. The names are fixed
(docs/operations.md lists them); tests/unit/metrics/test_metrics.py scrapes each of them.
"""

import threading
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate
from typing import TypeVar

from prometheus_client import CollectorRegistry, Gauge, Histogram, make_wsgi_app
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from bmq.metrics.counters import LATENCY_BUCKETS_SECONDS, ShardCounters, Totals
from bmq.metrics.endpoint import Endpoint, Place
from bmq.metrics.health import Health

# Seconds. A batch with little work takes 0.1 to 0.3 s, a batch of a backlog several seconds; the first batch compiles
# kernels and reads state. A batch of more than 60 s is a fault, however long it takes.
BATCH_BUCKETS_SECONDS = (
    0.05,
    0.1,
    0.2,
    0.3,
    0.4,
    0.5,
    0.6,
    0.8,
    1.0,
    1.5,
    2.0,
    3.0,
    5.0,
    10.0,
    20.0,
    30.0,
    60.0,
)


class Metrics:
    """The metrics of one service; thread-safe.

    Parameters
    ----------
    place : where `/metrics` is served. After `start` the attribute `port` has the actual port.
    feeds : feeds whose counters are shown as 0 from the start, so that rate() sees their first reading.
    health : what `/health` answers.
    """

    def __init__(self, place: Place, feeds: Iterable[str] = (), health: Health | None = None) -> None:
        self.port = place.port
        self.health = health or Health(float("inf"))
        self._lock = threading.Lock()
        self._totals = Totals()
        for feed in feeds:
            for counter in (self._totals.readings, self._totals.late, self._totals.lost, self._totals.suppressed):
                counter[feed] = 0
        self._registry = CollectorRegistry()
        self._registry.register(_TotalsCollector(self._totals, self._lock))
        self._batch_seconds = Histogram(
            "bmq_batch_seconds",
            "Time of one micro-batch, from its trigger to its commit.",
            buckets=BATCH_BUCKETS_SECONDS,
            registry=self._registry,
        )
        self._lag = Gauge(
            "bmq_input_lag_records",
            "Records of a feed's partition that the last batch left unread.",
            ["feed", "partition"],
            registry=self._registry,
        )
        age = Gauge(
            "bmq_last_batch_age_seconds", "Time since the last batch ended; NaN before.", registry=self._registry
        )
        age.set_function(self._age)
        silence = Gauge(
            "bmq_broker_silent_seconds", "For how long no broker has answered; 0 if one does.", registry=self._registry
        )
        silence.set_function(lambda: self.health.state().broker_silent_seconds)
        self._endpoint = Endpoint(place, make_wsgi_app(self._registry), self.health)
        self._up = Gauge("bmq_up", "1 while the streaming query runs, else 0.", registry=self._registry)

    def start(self) -> None:
        """Serve `/metrics` and `/health` until `stop`.

        Raises
        ------
        SetupError : the port cannot be bound, or the certificate cannot be read.
        """
        self.port = self._endpoint.start()

    def stop(self) -> None:
        """Stop serving and free the port; do nothing if the server does not run."""
        self._endpoint.stop()

    def add(self, batch: Iterable[ShardCounters]) -> None:
        """Add the counters of one batch: one object for each shard that had work."""
        with self._lock:
            self._totals.add(batch)

    def batch(self, seconds: float) -> None:
        """Record how long a micro-batch took, and that it has ended now."""
        self._batch_seconds.observe(seconds)
        self.health.batch()

    def lag(self, feed: str, partition: int, records: int) -> None:
        """Record how many records of a partition are still unread."""
        self._lag.labels(feed, str(partition)).set(records)

    def running(self) -> None:
        """Show that the streaming query runs."""
        self._up.set(1)
        self.health.running()

    def ended(self) -> None:
        """Show that the streaming query no longer runs, because it failed or was stopped."""
        self._up.set(0)
        self.health.ended()

    def _age(self) -> float:
        age = self.health.state().last_batch_age_seconds
        return float("nan") if age is None else age


class _TotalsCollector(Collector):
    """Shows `Totals` at the moment of the scrape.

    A custom collector, because prometheus_client's Histogram accepts only single observations, and a batch has too many
    events to observe one by one.
    """

    def __init__(self, totals: Totals, lock: threading.Lock) -> None:
        self._totals = totals
        self._lock = lock

    def collect(self) -> Iterator[Metric]:
        with self._lock:
            yield from [*self._counters(), *self._gauges(), self._latency()]

    def _counters(self) -> Iterator[Metric]:
        totals = self._totals
        yield _counter("bmq_readings_total", "Readings read, late ones included.", ["feed"], totals.readings)
        yield _counter(
            "bmq_events_total",
            "Events written; crossings one by one, whether or not one event holds several.",
            ["kind", "sign", "reason"],
            totals.events,
        )
        yield _counter("bmq_dead_letters_total", "Records that were no reading.", ["feed", "code"], totals.dead_letters)
        yield _counter(
            "bmq_lost_offsets_total",
            "Offsets that Kafka no longer had when the service came to read them (job.on_data_loss).",
            ["feed"],
            totals.lost,
        )
        yield _counter(
            "bmq_late_readings_total",
            "Readings older than the last one applied of their stream, or too far behind its newest one; they change "
            "nothing.",
            ["feed"],
            totals.late,
        )
        yield _counter(
            "bmq_suppressed_events_total",
            "Events that cooldown or max_events of their query, or limits.passes, suppressed.",
            ["feed"],
            totals.suppressed,
        )
        yield _counter("bmq_replies_total", "Control commands answered.", ["status"], totals.replies)
        yield _counter(
            "bmq_index_visits_total", "Index entries looked at to answer readings.", ["engine"], totals.visits
        )
        yield _counter(
            "bmq_replica_rebuilds_total",
            "Shard replicas read anew from the state store, for want of one in the shard's process.",
            [],
            {(): totals.replica_rebuilds},
        )

    def _gauges(self) -> Iterator[Metric]:
        totals = self._totals
        yield _gauge("bmq_queries", "Standing queries.", ["kind"], totals.queries)
        yield _gauge("bmq_tenant_queries", "Standing queries of each tenant.", ["tenant"], totals.tenants)
        yield _gauge(
            "bmq_tenant_streams",
            "Streams that the standing queries of each tenant name.",
            ["tenant"],
            totals.tenant_streams,
        )
        yield _gauge("bmq_streams", "Streams seen.", ["feed"], totals.streams())
        yield _gauge(
            "bmq_lagging_streams",
            "Streams whose last reading came when the feed was ahead of it by more than max_lateness.",
            ["feed"],
            totals.lagging(),
        )
        yield _gauge(
            "bmq_stream_lag_seconds",
            "The largest lag of a reading that the last batch applied.",
            ["feed"],
            {feed: totals.max_lags[feed] / 1000 for feed in totals.readings},
        )
        yield _gauge(
            "bmq_clock_seconds",
            "How far the feed's event time has come, in seconds since 1970.",
            ["feed"],
            {feed: time / 1000 for feed, time in totals.clocks.items()},
        )
        yield _gauge(
            "bmq_pending_crossings",
            "Pending crossings: not confirmed yet, or without the second crossing of their pattern.",
            [],
            {(): totals.pending()},
        )
        yield _gauge(
            "bmq_processing_efficiency",
            "Part of the visited index entries that became events, since the start (the papers' PE).",
            ["engine"],
            totals.processing_efficiency(),
        )
        yield _gauge("bmq_state_bytes", "Size of all shards' state.", [], {(): totals.state_bytes()})

    def _latency(self) -> Metric:
        ends = [*(str(end) for end in LATENCY_BUCKETS_SECONDS), "+Inf"]
        return HistogramMetricFamily(
            "bmq_event_latency_seconds",
            "Time from a record's timestamp to the event it caused leaving the operator.",
            buckets=list(zip(ends, accumulate(self._totals.latency_counts), strict=True)),
            sum_value=self._totals.latency_sum_seconds,
        )


# The values of a metric's labels; a single value needs no tuple.
_Labels = TypeVar("_Labels", bound=str | tuple[str, ...])


def _counter(name: str, text: str, labels: list[str], numbers: Mapping[_Labels, float]) -> Metric:
    return _filled(CounterMetricFamily(name, text, labels=labels), numbers)


def _gauge(name: str, text: str, labels: list[str], numbers: Mapping[_Labels, float]) -> Metric:
    return _filled(GaugeMetricFamily(name, text, labels=labels), numbers)


def _filled(family: CounterMetricFamily | GaugeMetricFamily, numbers: Mapping[_Labels, float]) -> Metric:
    for labels, number in numbers.items():
        family.add_metric([labels] if isinstance(labels, str) else labels, number)
    return family
