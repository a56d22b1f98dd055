"""A Tile38 server as an expert would use it for border queries, over its own protocol. Knows nothing of Kafka.

One channel with a fence for each square, one subscriber to all channels, one connection that sets positions in
pipelines: Tile38 applies writes one after the other, so more connections gain nothing. The server keeps no log on disk,
which makes it faster.
"""

import json
import re
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.answers import expected_by_stream, sampled_streams
from bench.workload import CityWorkload, Floats, stream_id
from bmq.broker.ports import HOST, free_ports

# At the equator. A centimetre of the city is the last of seven decimals, so that squares are exact boxes of degrees.
DEGREES_PER_M = 1e-5
PIPELINE = 1_000  # commands whose replies are read together
START_SECONDS = 30.0
LIMIT_SECONDS = 900.0  # of silence
EVENT = b'"detect":"'
COUNTED, ENDED = b"bench-counted", b"bench-ended"  # channels of the marks between and behind the events

# (sign, query id, longitude, latitude): Tile38's messages have no event time, but they have the place.
Seen = tuple[str, str, float, float]


@dataclass(frozen=True, slots=True)
class Rate:
    """Readings and events a second, from the first counted reading to the arrival of the last event."""

    readings_per_s: float
    events_per_s: float


def measure(program: Path, folder: Path, workload: CityWorkload) -> Rate:
    """Run the workload through a server of its own; check the events of sampled objects; leave out the first round.

    Raises
    ------
    AssertionError
        If an event of a sampled object is missing, wrong or there twice.
    """
    folder.mkdir()
    rounds = [_set_commands(xs, ys) for _, xs, ys in workload.rounds()]
    with _running(program, folder) as port, _connected(port) as writer, _connected(port) as reader:
        _send(writer, _fence_commands(workload))
        subscriber = Subscriber(reader, folder / "messages")
        _send(writer, [*rounds[0], _command("PUBLISH", COUNTED.decode(), "now")])
        subscriber.wait_for(COUNTED)
        n_before, begin = subscriber.n_events, time.perf_counter()
        for commands in rounds[1:]:
            _send(writer, commands)
        _send(writer, [_command("PUBLISH", ENDED.decode(), "now")])
        subscriber.wait_for(ENDED)
        passed = time.perf_counter() - begin
    check(workload, folder / "messages")
    n_readings = workload.n_streams * (workload.n_rounds - 1)
    return Rate(n_readings / passed, (subscriber.n_events - n_before) / passed)


class Subscriber:
    """Writes what arrives on any channel to a file, and counts the events in it.

    Nothing is parsed meanwhile: the server should have the cores.
    """

    def __init__(self, connection: socket.socket, path: Path) -> None:
        self.n_events = 0
        self._connection, self._path = connection, path
        self._marks = {mark: threading.Event() for mark in (COUNTED, ENDED)}
        connection.sendall(_command("PSUBSCRIBE", "*"))
        self._tail = connection.recv(1_000)  # the reply: no event was sent yet
        threading.Thread(target=self._read, daemon=True).start()

    def wait_for(self, mark: bytes) -> None:
        """Return when everything before a mark has arrived."""
        n_events = -1
        while not self._marks[mark].wait(LIMIT_SECONDS):
            if n_events == self.n_events:
                raise TimeoutError(f"no message of Tile38 for {LIMIT_SECONDS} s, and {mark!r} did not arrive")
            n_events = self.n_events

    def _read(self) -> None:
        longest = max(len(EVENT), len(COUNTED), len(ENDED)) - 1
        with self._path.open("wb") as file:
            while not self._marks[ENDED].is_set() and (chunk := self._connection.recv(1 << 20)):
                file.write(chunk)
                # A text may lie across two chunks; an event that the tail already had is not counted again.
                text = self._tail + chunk
                self.n_events += text.count(EVENT) - self._tail.count(EVENT)
                self._tail = text[-longest:]
                marks = [mark for mark in self._marks if mark in text]
                file.flush()
                for mark in marks:
                    self._marks[mark].set()


def check(workload: CityWorkload, messages: Path) -> None:
    """Compare sign, query and place of the sampled objects' events with the definition, as sets with repetitions.

    Tile38's boxes hold their upper borders, too. So the definition is asked with borders half a centimetre higher.
    """
    streams = sampled_streams(workload)
    numbers = {stream_id(number): number for number in streams}
    found: dict[str, list[Seen]] = {stream: [] for stream in numbers}
    with messages.open("rb") as file:
        for line in file:
            name = re.search(rb'"id":"(v\d+)"', line) if EVENT in line else None
            if name and (stream := name[1].decode()) in found:
                event = json.loads(line)
                lon, lat = event["object"]["coordinates"][:2]
                sign = {"enter": "+", "exit": "-"}[event["detect"]]
                found[stream].append((sign, event["hook"], lon, lat))
    places = {
        (stream_id(number), event_time): (float(_degrees(xs[number])), float(_degrees(ys[number])))
        for event_time, xs, ys in workload.rounds()
        for number in streams
    }
    for stream, ledger in expected_by_stream(_Closed.of(workload), streams).items():
        expected = [(sign, query_id, *places[stream, event_time]) for sign, query_id, event_time, _ in ledger]
        if sorted(found[stream]) != sorted(expected):
            raise AssertionError(f"Tile38's events of {stream} differ from the definition")


@dataclass(frozen=True, slots=True)
class _Closed(CityWorkload):
    """The same workload for boxes that hold their upper borders."""

    @staticmethod
    def of(workload: CityWorkload) -> "_Closed":
        names = CityWorkload.__dataclass_fields__
        return _Closed(**{name: getattr(workload, name) for name in names})

    def squares(self) -> tuple[Floats, Floats]:
        lo, hi = CityWorkload.squares(self)
        return lo, hi + 0.005


@contextmanager
def _running(program: Path, folder: Path) -> Iterator[int]:
    """Start a server on a free port of this machine alone; yield the port."""
    (port,) = free_ports(1)
    options = ["-h", HOST, "-p", str(port), "-d", str(folder / "data"), "--appendonly", "no", "-q"]
    server = subprocess.Popen([str(program), *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                socket.create_connection((HOST, port), 1).close()
                break
            except OSError:
                if server.poll() is not None or time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
        yield port
    finally:
        server.terminate()
        server.wait(30)


@contextmanager
def _connected(port: int) -> Iterator[socket.socket]:
    with socket.create_connection((HOST, port), LIMIT_SECONDS) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.settimeout(None)
        yield connection


def _send(connection: socket.socket, commands: list[bytes]) -> None:
    """Send commands whose replies are one line each; read the replies of one pipeline after the other."""
    for start in range(0, len(commands), PIPELINE):
        block = commands[start : start + PIPELINE]
        connection.sendall(b"".join(block))
        replies = b""
        while replies.count(b"\r\n") < len(block):
            part = connection.recv(1 << 16)
            if not part or b"-ERR" in replies + part:
                raise RuntimeError(f"Tile38 refused a command: {(replies + part)[-200:]!r}")
            replies += part


def _fence_commands(workload: CityWorkload) -> list[bytes]:
    """Return SETCHAN for each square: a fence that reports what enters and leaves it."""
    lo, hi = workload.squares()
    fence = ("WITHIN", "fleet", "FENCE", "DETECT", "enter,exit", "BOUNDS")
    return [
        _command("SETCHAN", query_id, *fence, *(_degrees(m) for m in (lo[1, i], lo[0, i], hi[1, i], hi[0, i])))
        for i, (query_id, _) in enumerate(workload.definitions())
    ]


def _set_commands(xs: Floats, ys: Floats) -> list[bytes]:
    """Return SET for each object."""
    return [
        _command("SET", "fleet", stream_id(number), "POINT", _degrees(y), _degrees(x))
        for number, (x, y) in enumerate(zip(xs.tolist(), ys.tolist(), strict=True))
    ]


def _degrees(metres: float) -> str:
    return f"{metres * DEGREES_PER_M:.7f}"


def _command(*words: str) -> bytes:
    """Return a command in RESP: an array of bulk strings."""
    return (f"*{len(words)}\r\n" + "".join(f"${len(word)}\r\n{word}\r\n" for word in words)).encode()
