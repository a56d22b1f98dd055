"""Marks for feeds that fell silent: their clock goes on with wall time, until readings come again.

    readings          r r  r                                   r r
    wall time     ----|-|--|----------|--|--|--|--|--|--|--|---|-|--->
    marks                   idle_advance m  m  m  m  m  m  m

`IdleFeeds` decides, on a time that it is given; `ClockWriter` is the thread that writes. The marks go through Kafka
and not to the shards at once, so that a replay has them where they were.
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

# Each mark makes a batch run. Timers are about seconds, so more often would only cost; less often, a stream would
# expire late by as much.
MARK_INTERVAL_MS = 1_000

# How often the thread looks whether a batch is running. Longer than Spark's report of a batch is on its way, shorter
# than the pause between two batches that marks cause.
LOOK_SECONDS = 0.1

CLOSE_LIMIT_SECONDS = 5.0  # for marks that are on their way when the service stops; none of them is needed

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Silence:
    """What is known of one feed.

    clock : its clock at the last reading, or at the first batch; None: no reading ever.
    since_ms, marked_ms : wall time of that, and of the last mark; None: none since.
    """

    idle_advance_ms: int
    clock: int | None = None
    since_ms: int = 0
    marked_ms: int | None = None


class IdleFeeds:
    """Which feeds are silent, and how far their clocks are to go. May be used by several threads.

    Parameters
    ----------
    idle_advance_ms : feed -> wall time without readings after which its clock moves; only feeds that have one.
    """

    def __init__(self, idle_advance_ms: Mapping[str, int]) -> None:
        self._feeds = {name: _Silence(silence) for name, silence in idle_advance_ms.items()}
        self._has_batch = False
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._feeds)

    def note_batch(self, batch: Iterable[ShardCounters], now_ms: int) -> None:
        """Take the counters of one batch, which ended at wall time ``now_ms`` (of any clock that never goes back)."""
        shards = list(batch)
        with self._lock:
            self._has_batch |= bool(shards)
            for name, feed in self._feeds.items():
                clock = max(
                    (shard["clocks"][name] for shard in shards if name in shard.get("clocks", {})), default=None
                )
                # Late readings count, too: they move no clock, but a feed that sends them is not silent.
                has_readings = any(shard.get("readings", {}).get(name) for shard in shards)
                if clock is not None and (has_readings or feed.clock is None):
                    feed.clock, feed.since_ms, feed.marked_ms = clock, now_ms, None

    def take_due_marks(self, now_ms: int) -> dict[str, int | None]:
        """Return feed -> event time of each mark to write now; each at most once in MARK_INTERVAL_MS.

        Before the first batch the time is None: such a mark moves nothing, but makes a batch run, whose counters say
        how far the clocks were when the service stopped last.

        The caller sees to it that no batch is running: its readings are not known yet, and a mark may not overtake
        them.
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
    """The thread that writes marks. Whatever befalls it is logged and tried again: the job does not depend on it.

    Parameters
    ----------
    is_busy : whether a batch is running; called from the thread.
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
        """Begin to look, and to write."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread; returns when it has ended."""
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            # Not idempotent, which takes a coordinator and a right of its own: a mark that comes twice changes nothing.
            marks = producer({**self._options, "enable.idempotence": "false", "acks": "all"})
        except ServiceError as error:
            _log.warning("Clocks of silent feeds stand still: %s", error)
            return
        was_busy = True
        while not self._stopping.wait(LOOK_SECONDS):
            try:
                marks.poll(0)
                is_busy = self._is_busy()
                # Twice: the report of a batch comes a moment after its end. And what is still on its way waits for the
                # broker: more of it would be written late.
                if not is_busy and not was_busy and not len(marks):
                    self._write(marks)
                was_busy = is_busy
            except Exception as error:  # whatever it is, the job goes on
                self._note(f"{type(error).__name__}: {error}")
        marks.flush(CLOSE_LIMIT_SECONDS)

    def _write(self, marks: Producer) -> None:
        for feed, event_time in self._feeds.take_due_marks(time.monotonic_ns() // 1_000_000).items():
            marks.produce(self._topic, render_mark(feed, event_time), on_delivery=self._note_delivery)

    def _note_delivery(self, error: KafkaError | None, message: Message) -> None:
        self._note(None if error is None else error.str())

    def _note(self, fault: str | None) -> None:
        """Say when marks begin to fail, and when they are written again."""
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
