"""Watches the health of the service: its counters at `/metrics`, as figures of the last seconds."""

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from bmq.view.figures import Figures, MetricsPlace, NoFigures, fetch_figures

SPAN_SECONDS = 10.0
INTERVAL_SECONDS = 1.0


class ServiceFigures:
    """A thread that asks the service once a second.

    Parameters
    ----------
    place : where the metrics are.
    note : is called with the figures, as the page shows them.
    """

    def __init__(self, place: MetricsPlace, note: Callable[[dict[str, Any]], None]) -> None:
        self._place = place
        self._note = note
        self._seen: deque[tuple[float, Figures]] = deque()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="view-figures", daemon=True)

    def start(self) -> None:
        """Start to ask."""
        self._thread.start()

    def stop(self) -> None:
        """Stop to ask."""
        self._ending.set()

    def _run(self) -> None:
        while not self._ending.is_set():
            try:
                figures, reason = fetch_figures(self._place), ""
            except NoFigures as error:
                figures, reason = None, str(error)
            self._note(self.shown(time.monotonic(), figures, reason))
            self._ending.wait(INTERVAL_SECONDS)

    def shown(self, now: float, figures: Figures | None, reason: str = "") -> dict[str, Any]:
        """Return the figures for the page; None: the service does not answer, for that reason."""
        if figures is None:
            self._seen.clear()
            return {"service": "unreachable", "metrics": self._place.url, "reason": reason}
        if self._seen and figures.readings < self._seen[-1][1].readings:  # the service has started again
            self._seen.clear()
        self._seen.append((now, figures))
        while len(self._seen) > 1 and now - self._seen[1][0] >= SPAN_SECONDS:
            self._seen.popleft()
        then, earlier = self._seen[0]
        span, last = now - then, figures.since(earlier)
        rates = {"readings_rate": last.readings / span, "events_rate": last.events / span} if span else {}
        return {
            "service": "running" if figures.up else "starting",
            "metrics": self._place.url,
            **rates,
            "latency_p50": last.latency_at(0.5),
            "latency_p99": last.latency_at(0.99),
            "batch_seconds": last.seconds_per_batch or None,
            "lag": figures.lag,
            "late": figures.late,
            "dead_letters": figures.dead_by_code,
            "queries": figures.queries,
            "streams": figures.streams,
            "state_bytes": figures.state_bytes,
        }
