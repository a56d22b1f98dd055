"""Marks for silent feeds: the clock of such a feed advances with wall time until readings come again.

    readings          r r  r                                   r r
    wall time     ----|-|--|----------|--|--|--|--|--|--|--|---|-|--->
    marks                   idle_advance m  m  m  m  m  m  m

`IdleFeeds` decides, from a time that the caller passes; `ClockWriter` is the thread that writes. The marks go through
Kafka and not directly to the shards, so that a replay has them at the same position.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from confluent_kafka import KafkaError, Message, Producer

from bmq.errors import ServiceError
from bmq.kafka_io.connect import Options, producer
from bmq.metrics.counters import ShardCounters
from bmq.wire.marks import render_mark

# Each mark makes a batch run. Timers last seconds, so shorter intervals would only cost batches; with longer intervals
# a stream would expire later by the same time.
MARK_INTERVAL_MS = 1_000

# How often the thread checks whether a batch is running. Longer than the delay of Spark's report of a batch, shorter
# than the pause between two batches that marks cause.
LOOK_SECONDS = 0.1

CLOSE_LIMIT_SECONDS = 5.0  # for marks that are not yet delivered when the service stops; the service needs none of them

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Silence:
    """The silence of one feed.

    clock : the feed's clock at its last reading, or at the first batch; None: the feed never had a reading.
    since_ms : wall time at which ``clock`` was noted.
    marked_ms : wall time of the last mark; None: no mark since the last reading.
    """

    idle_advance_ms: int
    clock: int | None = None
    since_ms: int = 0
    marked_ms: int | None = None


class IdleFeeds:
    """Decides which feeds are silent and how far their clocks advance. Several threads may use it.

    Parameters
    ----------
    idle_advance_ms : feed -> wall time without readings after which its clock advances; only feeds with this option.
    """

    def __init__(self, idle_advance_ms: Mapping[str, int]) -> None:
        self._feeds = {name: _Silence(silence) for name, silence in idle_advance_ms.items()}
        self._has_batch = False
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._feeds)

    def note_batch(self, batch: Iterable[ShardCounters], now_ms: int) -> None:
        """Note the counters of a batch that ended at ``now_ms`` (wall time, of any clock that never goes back)."""
        shards = list(batch)
        with self._lock:
            self._has_batch |= bool(shards)
            for name, feed in self._feeds.items():
                clock = max(
                    (shard["clocks"][name] for shard in shards if name in shard.get("clocks", {})), default=None
                )
                # Late readings count, too: they do not advance the clock, but a feed that sends them is not silent.
                has_readings = any(shard.get("readings", {}).get(name) for shard in shards)
                if clock is not None and (has_readings or feed.clock is None):
                    feed.clock, feed.since_ms, feed.marked_ms = clock, now_ms, None

    def take_due_marks(self, now_ms: int) -> dict[str, int | None]:
        """Return feed -> event time of each mark to write now; each at most once in MARK_INTERVAL_MS.

        Before the first batch the time is None: such a mark advances no clock, but makes a batch run. The counters of
        this batch contain the clocks from the time when the service last stopped.

        The caller makes sure that no batch is running. The readings of a running batch are not yet known here, and a
        mark must not overtake them.
        """
        marks: dict[str, int | None] = {}
        with self._lock:
            for name, feed in self._feeds.items():
                silent_ms = now_ms - feed.since_ms
                if self._has_batch and (feed.clock is None or silent_ms < feed.idle_advance_ms):
                    continue
                if feed.marked_ms is None or now_ms - feed.marked_ms >= MARK_INTERVAL_MS:
                    feed.marked_ms = now_ms
                    marks[name] = None if feed.clock is None else feed.clock + silent_ms
        return marks


class ClockWriter:
    """The thread that writes marks. It logs every failure and tries again; the job does not depend on it.

    Parameters
    ----------
    is_busy : returns whether a batch is running; called from the thread.
    """

    def __init__(self, options: Options, topic: str, feeds: IdleFeeds, is_busy: Callable[[], bool]) -> None:
        self._options = options
        self._topic = topic
        self._feeds = feeds
        self._is_busy = is_busy
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="bmq-clock", daemon=True)
        self._works = True

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread; return when it has ended."""
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            # Not idempotent, because that needs a coordinator and a Kafka permission: a repeated mark changes nothing.
            marks = producer({**self._options, "enable.idempotence": "false", "acks": "all"})
        except ServiceError as error:
            _log.warning("Clocks of silent feeds stand still: %s", error)
            return
        was_busy = True
        while not self._stopping.wait(LOOK_SECONDS):
            try:
                marks.poll(0)
                is_busy = self._is_busy()
                # Not busy in two checks, because the report of a batch comes a moment after its end. And no mark in the
                # queue: those are undelivered because the broker is slow, and further ones would be written late.
                if not is_busy and not was_busy and not len(marks):
                    self._write(marks)
                was_busy = is_busy
            except Exception as error:  # of any type: the job goes on
                self._note(f"{type(error).__name__}: {error}")
        marks.flush(CLOSE_LIMIT_SECONDS)

    def _write(self, marks: Producer) -> None:
        for feed, event_time in self._feeds.take_due_marks(time.monotonic_ns() // 1_000_000).items():
            marks.produce(self._topic, render_mark(feed, event_time), on_delivery=self._note_delivery)

    def _note_delivery(self, error: KafkaError | None, message: Message) -> None:
        self._note(None if error is None else error.str())

    def _note(self, fault: str | None) -> None:
        """Log when marks begin to fail, and when they are written again."""
        if fault is not None and self._works:
            _log.warning(
                "Marks cannot be written to %s, so the clocks of silent feeds stand still: %s. Tried again until it "
                "works; look at the broker.",
                self._topic,
                fault,
            )
        elif fault is None and not self._works:
            _log.info("Marks are written to %s again.", self._topic)
        self._works = fault is None
