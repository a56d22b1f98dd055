"""Browsers that sleep, ask wrongly or are too many, at the server itself with its real sockets."""

import asyncio
import http.client
import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from bmq.client import Client
from bmq.records import Feed, Installation
from bmq.view.live_page import PageOptions, listen, served
from bmq.view.live_state import LiveState
from bmq.view.page_commands import PageCommands
from bmq.view.page_guard import PageGuard
from bmq.view.page_server import PageServer
from bmq.view.update_stream import MOST_BROWSERS, UpdateStreams
from tests.brokers import wait_until

N_STREAMS = 20_000  # an update of them fills the buffers of a connection that nobody reads
SEND_SECONDS = 1.0


class Place:
    """A served page without Kafka."""

    def __init__(self, port: int, server: PageServer, state: LiveState) -> None:
        self.port = port
        self.server = server
        self.state = state
        self._event_time = 0

    def move_all(self) -> int:
        self._event_time += 1
        readings = [(f"s{n}", self._event_time, (float(n), 0.0)) for n in range(N_STREAMS)]
        self.state.apply_readings("plane", readings, 0)
        return self._event_time

    def open(self, method: str = "GET") -> socket.socket:
        """Send a request for updates, with a receive buffer of some kB, and read no answer."""
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", self.port))
        client.sendall(f"{method} /api/updates HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n\r\n".encode())
        return client

    def status(self, method: str, path: str) -> int:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        connection.request(method, path)
        status = connection.getresponse().status
        connection.close()
        return status


@pytest.fixture
def place() -> Iterator[Place]:
    with make_place() as place:
        yield place


@contextmanager
def make_place() -> Iterator[Place]:
    feed = Feed("plane", "plane", "id", ("x", "y"))
    state = LiveState({"plane": feed}, members_of_events=True)
    with Client("127.0.0.1:1") as client, listen(PageOptions(port=0)) as listener:
        port = listener.getsockname()[1]
        commands = PageCommands(client, Installation({"plane": feed}))
        server = PageServer(state, commands, PageGuard(port), {}, send_seconds=SEND_SECONDS)
        with served(server, listener):
            yield Place(port, server, state)


def test_a_browser_that_reads_nothing_holds_up_no_other_and_loses_its_place(place: Place) -> None:
    sleeper = place.open()
    wait_until(lambda: place.server.n_browsers == 1, "the browser that sleeps")
    connection = http.client.HTTPConnection("127.0.0.1", place.port, timeout=10)
    connection.request("GET", "/api/updates")
    response = connection.getresponse()
    n_read = 0

    def has_left() -> bool:
        nonlocal n_read
        newest = place.move_all()
        while True:
            line = response.readline()  # fails after 10 s without an update
            if (
                line.startswith(b'data: {"feeds":{"plane"')
                and json.loads(line[6:])["feeds"]["plane"]["times"][0] == newest
            ):
                n_read += 1
                return place.server.n_browsers == 1

    wait_until(has_left, "the end of the browser that sleeps")
    sleeper.close()
    assert n_read > 4 * SEND_SECONDS  # the other one had updates while the first one was stuck
    connection.close()
    response.close()
    wait_until(lambda: place.server.n_browsers == 0, "the end of the other browser")


def test_too_many_browsers_are_refused_until_one_goes(place: Place) -> None:
    browsers = [place.open() for _ in range(MOST_BROWSERS)]
    wait_until(lambda: place.server.n_browsers == MOST_BROWSERS, "all browsers")
    refused = place.status("GET", "/api/updates")
    browsers.pop().close()
    wait_until(lambda: place.server.n_browsers == MOST_BROWSERS - 1, "one place")
    for browser in browsers:
        browser.close()
    wait_until(lambda: place.server.n_browsers == 0, "no browsers")

    assert refused == 503


def test_a_request_without_a_body_for_updates_is_refused_and_takes_no_place(place: Place) -> None:
    assert place.status("HEAD", "/api/updates") == 405
    assert place.server.n_browsers == 0


def test_a_browser_that_missed_too_many_deletes_gets_the_setup_again() -> None:
    state = LiveState({}, members_of_events=True)
    stream = UpdateStreams(state, {}).open()
    assert stream is not None

    async def names(n: int) -> list[bytes]:
        found = [await anext(aiter(stream.body_iterator)) for _ in range(n)]
        return [sent.partition(b"event: ")[2].partition(b"\n")[0] for sent in found if isinstance(sent, bytes)]

    async def watch() -> list[list[bytes]]:
        first = await names(2)
        for n in range(10_002):
            state.put_query(f"q{n}", b"{}", 2 * n, 0)
            state.delete_query(f"q{n}", 2 * n + 1)
        return [first, await names(3)]

    assert asyncio.run(watch()) == [[b"setup", b"update"], [b"setup", b"update", b"update"]]
