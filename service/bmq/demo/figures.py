"""The numbers of the demo: the service's counters at `/metrics`, and their differences between two moments."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from urllib.error import URLError
from urllib.request import urlopen

from prometheus_client.parser import text_string_to_metric_families

SCRAPE_LIMIT_SECONDS = 5.0  # an answer takes milliseconds, on a busy machine a second

Buckets = tuple[tuple[float, float], ...]  # (upper end in seconds, events at or below it), ascending


@dataclass(frozen=True, slots=True)
class Figures:
    """The counters at one moment."""

    up: bool = False
    readings: float = 0
    events: float = 0
    dead_letters: float = 0
    queries: float = 0
    streams: float = 0
    batches: float = 0
    batch_seconds: float = 0
    latency: Buckets = ()

    @property
    def seconds_per_batch(self) -> float:
        """The mean time of a batch; 0 before the first."""
        return self.batch_seconds / self.batches if self.batches else 0.0

    def latency_at(self, share: float) -> float | None:
        """Return the latency in seconds that ``share`` of the events do not exceed; None without events."""
        return quantile(self.latency, share)

    def since(self, earlier: "Figures") -> "Figures":
        """Return the counters minus those of ``earlier``; the numbers of queries and streams are not subtracted."""
        before = dict(earlier.latency)
        return Figures(
            up=self.up,
            readings=self.readings - earlier.readings,
            events=self.events - earlier.events,
            dead_letters=self.dead_letters - earlier.dead_letters,
            queries=self.queries,
            streams=self.streams,
            batches=self.batches - earlier.batches,
            batch_seconds=self.batch_seconds - earlier.batch_seconds,
            latency=tuple((end, count - before.get(end, 0)) for end, count in self.latency),
        )


def scrape(port: int) -> Figures | None:
    """Return the figures of the service on this machine, or None if it does not answer."""
    try:
        with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=SCRAPE_LIMIT_SECONDS) as response:
            return read_figures(response.read().decode())
    except (URLError, OSError):
        return None


def read_figures(text: str) -> Figures:
    """Return the figures in Prometheus' text format, summed over feeds and kinds."""
    sums: dict[str, float] = {}
    latency: list[tuple[float, float]] = []
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            sums[sample.name] = sums.get(sample.name, 0) + sample.value
            if sample.name == "bmq_event_latency_seconds_bucket":
                latency.append((float(sample.labels["le"]), sample.value))
    return Figures(
        up=sums.get("bmq_up") == 1,
        readings=sums.get("bmq_readings_total", 0),
        events=sums.get("bmq_events_total", 0),
        dead_letters=sums.get("bmq_dead_letters_total", 0),
        queries=sums.get("bmq_queries", 0),
        streams=sums.get("bmq_streams", 0),
        batches=sums.get("bmq_batch_seconds_count", 0),
        batch_seconds=sums.get("bmq_batch_seconds_sum", 0),
        latency=tuple(sorted(latency)),
    )


def quantile(buckets: Sequence[tuple[float, float]], share: float) -> float | None:
    """Return the value that ``share`` of the observations do not exceed; None without observations.

    The same as Prometheus' histogram_quantile: observations count as evenly spread within a bucket, and those above the
    last finite end count as that end.
    """
    if not buckets or not buckets[-1][1]:
        return None
    rank = share * buckets[-1][1]
    for (low, below), (high, up_to) in pairwise([(0.0, 0.0), *buckets]):
        if up_to >= rank and up_to > below:
            return low if high == float("inf") else low + (high - low) * (rank - below) / (up_to - below)
    return buckets[-1][0]
