"""Publishes the readings of a world at a steady rate, from its own thread."""

import threading
import time
from collections.abc import Iterator, Mapping

import numpy as np

from bmq.demo.generated_streams import World
from bmq.kafka_io.connect import CONNECT_TIMEOUT_SECONDS, explained, producer
from bmq.records import Float64s, Int64s

# Seconds between two bursts of readings. Longer pauses are visible as steps in the latency; with shorter pauses the
# bursts cost more than the readings.
BURST_SECONDS = 0.05


class Feeder:
    """Publishes readings of all streams of a world in turn, ``rate`` readings a second in total.

    Parameters
    ----------
    options : client options with `bootstrap.servers`.
    rate : readings a second; if the machine cannot reach the rate, it publishes as many as it can.
    """

    def __init__(self, options: Mapping[str, str], world: World, rate: float) -> None:
        self._options = options
        self._producer = producer(options)
        self._world = world
        self._rate = rate
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._feed, name="feeder", daemon=True)

    def start(self) -> None:
        """Start to publish."""
        self._thread.start()

    def stop(self) -> None:
        """Stop to publish; return when the broker has all readings."""
        self._ending.set()
        self._thread.join()
        with explained(self._options):
            self._producer.flush(CONNECT_TIMEOUT_SECONDS)

    def _feed(self) -> None:
        started = time.monotonic()
        n_sent = 0
        turns = take_turns(len(self._world.ids), self._rate * BURST_SECONDS)
        # A stream has a reading again after all other streams had one.
        seconds_between = len(self._world.ids) / self._rate
        while not self._ending.wait(max(0.0, started + n_sent / self._rate - time.monotonic())):
            rows = next(turns)
            self._publish(rows, self._world.move(rows, seconds_between))
            n_sent += rows.size

    def _publish(self, rows: Int64s, values: Float64s) -> None:
        world = self._world
        # Formatted by hand, because json.dumps would take longer than everything else. Ids need no escapes.
        names = [f'","{world.dimensions[0]}":', *(f',"{name}":' for name in world.dimensions[1:])]
        now = int(time.time() * 1000)
        for row, *numbers in zip(rows.tolist(), *values.tolist(), strict=True):
            stream_id = world.ids[row]
            fields = "".join(f"{name}{number!r}" for name, number in zip(names, numbers, strict=True))
            record = f'{{"{world.id_field}":"{stream_id}{fields},"ts":{now}}}'
            while not self._queue(stream_id, record):
                self._producer.poll(CONNECT_TIMEOUT_SECONDS)
        self._producer.poll(0)

    def _queue(self, stream_id: str, record: str) -> bool:
        """Add a record to the producer's queue; return False if the queue is full."""
        try:
            # With its id as the key, a stream is in one partition, and so in order.
            self._producer.produce(self._world.feed, record.encode(), stream_id.encode())
        except BufferError:
            return False
        return True


def take_turns(n_streams: int, burst: float) -> Iterator[Int64s]:
    """Return rows 0..n_streams - 1 over and over, about ``burst`` at a time, no row twice in a burst."""
    size = min(n_streams, max(1, round(burst)))
    start = 0
    while True:
        yield np.arange(start, start + size) % n_streams
        start = (start + size) % n_streams
