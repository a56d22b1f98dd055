"""Looks after the running service: ends it if no batch ends any more, and reports when no broker answers.

Knows how to end this process, but not why Spark stands still.
"""

import logging
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable

from bmq.errors import ServiceError
from bmq.kafka_io.connect import Options, Unreachable
from bmq.kafka_io.topics import Topics
from bmq.metrics.health import BROKER_LIMIT_SECONDS, Health

LOOK_SECONDS = 1.0
ASK_SECONDS = 5.0  # between two questions to a broker, each of which is one small request

# After the JVM was killed, what waits for it raises within a moment. Longer, and the process ends without ceremony.
LAST_SECONDS = 30.0

_log = logging.getLogger(__name__)


class _Watch(ABC):
    """A thread that looks at something again and again."""

    def __init__(self, name: str, seconds: float) -> None:
        self._seconds = seconds
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread after its present look. May be called from any thread, and before `start`."""
        self._stopping.set()

    @abstractmethod
    def _look(self) -> None:
        """Look once."""

    def _run(self) -> None:
        while not self._stopping.wait(self._seconds):
            self._look()


class Watchdog(_Watch):
    """Ends the service if the streaming query has given no sign for too long.

    Parameters
    ----------
    end_spark : kills the JVM, so that whoever waits for it goes on.

    Attributes
    ----------
    reason : why it has ended the service; None: it has not.
    """

    def __init__(self, health: Health, end_spark: Callable[[], None]) -> None:
        super().__init__("bmq-watchdog", LOOK_SECONDS)
        self._health = health
        self._end_spark = end_spark
        self.reason: str | None = None

    def _look(self) -> None:
        overdue = self._health.overdue_seconds()
        if overdue is None:
            return
        self.reason = (
            f"The streaming query has given no sign for {overdue:.0f} s, which is longer than job.batch_timeout. "
            "The service ends, so that whoever looks after it starts it again; it goes on at its checkpoint. If "
            "batches take that long, raise job.batch_timeout or lower job.max_readings_per_batch."
        )
        self._health.ended()
        self._end_spark()
        if not self._stopping.wait(LAST_SECONDS):
            _log.error("%s", self.reason)
            os._exit(1)


class BrokerWatch(_Watch):
    """Asks a broker from time to time, and reports when none answers and when one does again."""

    def __init__(self, options: Options, health: Health) -> None:
        super().__init__("bmq-broker", ASK_SECONDS)
        self._options = options
        self._health = health
        self._topics = Topics(options)
        self._is_reported = False

    def _look(self) -> None:
        answers = _answers(self._topics)
        silent = self._health.state().broker_silent_seconds
        self._health.broker(answers)
        if answers and self._is_reported:
            self._is_reported = False
            _log.info("Kafka answers again, after %.0f s.", silent)
        elif not answers and not self._is_reported and silent >= BROKER_LIMIT_SECONDS:
            self._is_reported = True
            _log.warning(
                "No broker at %s has answered for %.0f s. The service goes on where it is as soon as one does.",
                self._options["bootstrap.servers"],
                silent,
            )


def _answers(topics: Topics) -> bool:
    try:
        topics.ping()
    except Unreachable:
        return False
    except ServiceError:
        return True  # it answers, and refuses
    return True
