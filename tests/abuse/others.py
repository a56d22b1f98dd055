"""The other tenants: 1,000 readings/s, an event for each, and how late each event arrives."""

import json
import statistics
import threading
import time
from dataclasses import dataclass

from confluent_kafka import Producer

from bmq.kafka_io.topic_reader import Start, TopicReader

FEED = "line"
QUERY_ID = "others"
N_STREAMS = 200
ROUND_SECONDS = 0.2  # a reading of each stream
DEFINITION = {"kind": "border", "feed": FEED, "region": {"box": {"x": [0, 10]}}}
ARRIVAL_LIMIT_SECONDS = 300.0


@dataclass(frozen=True)
class Delays:
    """How late the events of some readings have arrived, ms."""

    n: int
    p99: float
    most: float


class Others:
    """Sends readings until it is stopped, each of which crosses the border, and reads their events.

    Parameters
    ----------
    topic : of the feed.
    own_topic : of the query's events, so that reading them takes no time for the events of others.
    """

    def __init__(self, servers: str, topic: str, own_topic: str) -> None:
        self._servers, self._topic = servers, topic
        self._reader = TopicReader({"bootstrap.servers": servers}, own_topic, Start.BEGINNING)
        self._arrived: dict[int, int] = {}  # when a round was sent -> when the last of its events arrived, epoch ms
        self._counts: dict[int, int] = {}  # when a round was sent -> its events that have arrived
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=target, daemon=True) for target in (self._send, self._read)]
        self.sent: list[int] = []  # when each round was sent, epoch ms

    def start(self) -> None:
        """Begin."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End."""
        self._stop.set()
        for thread in self._threads:
            thread.join()
        self._reader.close()

    def wait(self, begin: int, end: int) -> list[int]:
        """Wait until all events of the rounds that were sent in this time, epoch ms, are there; return these rounds."""
        rounds = [at for at in self.sent if begin <= at < end]
        deadline = time.monotonic() + ARRIVAL_LIMIT_SECONDS
        while any(self._counts.get(at, 0) < N_STREAMS for at in rounds):
            if time.monotonic() > deadline:
                raise TimeoutError(f"events of {begin} to {end} have not arrived for {ARRIVAL_LIMIT_SECONDS:.0f} s")
            time.sleep(0.1)
        return rounds

    def delays(self, begin: int, end: int) -> Delays:
        """Return the delays of the rounds that were sent in this time, epoch ms, once all of their events are there.

        The delay of a round is that of its last event.
        """
        late = sorted(self._arrived[at] - at for at in self.wait(begin, end))
        if not late:
            raise RuntimeError(f"no round was sent from {begin} to {end}, so there are no delays. Send for longer.")
        return Delays(len(late), statistics.quantiles(late, n=100)[98] if len(late) > 1 else late[0], late[-1])

    def _send(self) -> None:
        producer = Producer({"bootstrap.servers": self._servers, "linger.ms": 2})
        x = 5
        while not self._stop.wait(ROUND_SECONDS):
            now, x = time.time_ns() // 1_000_000, 20 - x  # 5 is inside, 15 is not
            for n in range(N_STREAMS):
                producer.produce(self._topic, json.dumps({"id": f"other-{n}", "ts": now, "x": x}), f"other-{n}")
            producer.poll(0)
            if self.sent or x == 5:  # a first reading outside has no event
                self.sent.append(now)
        producer.flush()

    def _read(self) -> None:
        while not self._stop.is_set():
            for message in self._reader.follow(time.monotonic() + 0.5):
                sent = json.loads(message.value() or b"")["event_time"]
                self._arrived[sent] = time.time_ns() // 1_000_000
                self._counts[sent] = self._counts.get(sent, 0) + 1
