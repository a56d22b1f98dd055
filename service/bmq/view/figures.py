"""The figures of a service: its counters at `/metrics`, and their differences between two moments."""

import base64
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http.client import HTTPException
from itertools import pairwise
from urllib.error import URLError
from urllib.request import Request, urlopen

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
    lag: float = 0
    late: float = 0
    state_bytes: float = 0
    dead_by_code: Mapping[str, float] = field(default_factory=dict)

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
            lag=self.lag,
            late=self.late - earlier.late,
            state_bytes=self.state_bytes,
            dead_by_code=self.dead_by_code,
        )


@dataclass(frozen=True, slots=True)
class MetricsPlace:
    """Where a service shows its metrics.

    Attributes
    ----------
    certificate : file in PEM with which the service speaks TLS, "" if it does not.
    user, password : of basic authentication; "": none.
    address : the whole address, if it does not follow from host and port; such as behind a proxy or in a container.
    """

    port: int
    host: str = "127.0.0.1"
    certificate: str = ""
    user: str = ""
    password: str = field(default="", repr=False)
    address: str = ""

    @property
    def url(self) -> str:
        """The address of the metrics."""
        if self.address:
            return self.address
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.certificate else 'http'}://{host}:{self.port}/metrics"


class NoFigures(Exception):
    """The service did not answer with its figures; the message says why."""


def scrape(place: MetricsPlace) -> Figures | None:
    """Return the figures of a service, or None if it does not answer."""
    try:
        return fetch_figures(place)
    except NoFigures:
        return None


def fetch_figures(place: MetricsPlace) -> Figures:
    """Return the figures of a service.

    Raises
    ------
    NoFigures
        Nothing answers, or not with the figures of a service.
    """
    request = Request(place.url)  # noqa: S310  # http or https, as MetricsPlace says
    if place.user:
        credentials = base64.b64encode(f"{place.user}:{place.password}".encode()).decode()
        request.add_header("Authorization", f"Basic {credentials}")
    try:
        with urlopen(request, timeout=SCRAPE_LIMIT_SECONDS, context=_trusted(place)) as response:  # noqa: S310
            return read_figures(response.read().decode())
    except URLError as error:
        raise NoFigures(str(error.reason)) from error
    except (OSError, ValueError, KeyError, HTTPException) as error:  # also an answer that is not of a service
        raise NoFigures(f"{type(error).__name__}: {error}") from error


def _trusted(place: MetricsPlace) -> ssl.SSLContext | None:
    """Return the certificates to trust: the service's own one, and at a named address also those of this machine."""
    if not place.url.startswith("https:"):
        return None
    if not place.address:
        return ssl.create_default_context(cafile=place.certificate)
    context = ssl.create_default_context()
    if place.certificate:
        context.load_verify_locations(place.certificate)
    return context


def read_figures(text: str) -> Figures:
    """Return the figures in Prometheus' text format, summed over feeds and kinds."""
    sums: dict[str, float] = {}
    latency: list[tuple[float, float]] = []
    dead: dict[str, float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            sums[sample.name] = sums.get(sample.name, 0) + sample.value
            if sample.name == "bmq_event_latency_seconds_bucket":
                latency.append((float(sample.labels["le"]), sample.value))
            elif sample.name == "bmq_dead_letters_total":
                dead[sample.labels["code"]] = dead.get(sample.labels["code"], 0) + sample.value
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
        lag=sums.get("bmq_input_lag_records", 0),
        late=sums.get("bmq_late_readings_total", 0),
        state_bytes=sums.get("bmq_state_bytes", 0),
        dead_by_code=dead,
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
