"""Whether the service lives, and whether it does its work: what `/health` answers, and what the watchdog looks at.

    live    the streaming query has given a sign within `job.batch_timeout`, or has not begun
    ready   it is live, has run its first batch, and a broker answers

A sign is the end of a batch, or a report that there was nothing to read; Spark gives one every 10 s at least.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus

import msgspec

BROKER_LIMIT_SECONDS = 30.0  # a broker that is restarted comes back within this time


@dataclass(frozen=True, slots=True)
class State:
    """The state of the service at one moment.

    Attributes
    ----------
    last_batch_age_seconds : None: no batch has ended.
    broker_silent_seconds : how long no broker has answered; 0 if the last one that was asked did.
    """

    live: bool
    ready: bool
    last_batch_age_seconds: float | None
    broker_silent_seconds: float


class Health:
    """Collects the signs; thread-safe.

    Parameters
    ----------
    limit_seconds : `job.batch_timeout`.
    clock : seconds that never go back.
    """

    def __init__(self, limit_seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit = limit_seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._is_ready = False
        self._sign: float | None = None
        self._batch: float | None = None
        self._silent_since: float | None = None

    def begun(self) -> None:
        """Note that the streaming query has begun: from now on signs are expected."""
        with self._lock:
            self._sign = self._clock()

    def running(self) -> None:
        """Note that it has run its first batch, if there was one to run."""
        with self._lock:
            self._is_ready = True

    def ended(self) -> None:
        """Note that it no longer runs."""
        with self._lock:
            self._is_ready, self._sign = False, None

    def idle(self) -> None:
        """Note that there was nothing to read."""
        with self._lock:
            if self._sign is not None:
                self._sign = self._clock()

    def batch(self) -> None:
        """Note that a batch has ended."""
        self.idle()
        with self._lock:
            self._batch = self._clock()

    def broker(self, answers: bool) -> None:
        """Note whether a broker answers."""
        with self._lock:
            if answers:
                self._silent_since = None
            elif self._silent_since is None:
                self._silent_since = self._clock()

    def overdue_seconds(self) -> float | None:
        """Return for how long there was no sign, if that is longer than the limit."""
        with self._lock:
            if self._sign is None:
                return None
            age = self._clock() - self._sign
        return age if age > self._limit else None

    def state(self) -> State:
        """Return the state now."""
        live = self.overdue_seconds() is None
        with self._lock:
            now = self._clock()
            silent = 0.0 if self._silent_since is None else now - self._silent_since
            age = None if self._batch is None else now - self._batch
            ready = self._is_ready and live and silent < BROKER_LIMIT_SECONDS
        return State(live, ready, age, silent)


def answer(health: Health, path: str) -> tuple[HTTPStatus, bytes]:
    """Return status and body for `/health`, `/health/live` and `/health/ready`; `/health` asks for both."""
    state = health.state()
    good = {"/health": state.live and state.ready, "/health/live": state.live, "/health/ready": state.ready}.get(path)
    if good is None:
        return HTTPStatus.NOT_FOUND, b"{}"
    return HTTPStatus.OK if good else HTTPStatus.SERVICE_UNAVAILABLE, msgspec.json.encode(state)
