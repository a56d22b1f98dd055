"""The protocol of Redis and Tile38, against a server that sends fixed bytes."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from bmq.broker.ports import HOST, free_ports
from bmq.conformance.adapter import SystemFailed
from bmq.conformance.resp import Connection, Refused

pytestmark = pytest.mark.unit


@contextmanager
def answering(*parts: bytes) -> Iterator[tuple[Connection, list[bytes]]]:
    """Yield a connection to a server that sends ``parts`` one by one and closes, and what the server received."""
    received: list[bytes] = []

    def serve() -> None:
        connection, _ = server.accept()
        with connection:
            received.append(connection.recv(1 << 16))
            for part in parts:
                connection.sendall(part)

    with socket.create_server((HOST, 0)) as server:
        thread = threading.Thread(target=serve)
        thread.start()
        connection = Connection(HOST, server.getsockname()[1], 5)
        try:
            yield connection, received
        finally:
            connection.close()
            thread.join()


@pytest.mark.parametrize(
    ("parts", "reply"),
    [
        ([b"+OK\r\n"], "OK"),
        ([b":1\r\n"], 1),
        ([b"$4\r\n\xc3\xa9\r\n\r\n"], "é\r\n"),
        ([b"$-1\r\n"], None),
        ([b"*2\r\n$1\r\na\r\n*1\r\n:7\r\n"], ["a", [7]]),
        ([b"*1\r\n$5\r\nab", b"cde\r", b"\n"], ["abcde"]),
    ],
)
def test_a_reply_of_every_type_is_read(parts: list[bytes], reply: object) -> None:
    with answering(*parts) as (connection, _):
        assert connection.command("PING") == reply


def test_a_command_is_an_array_of_words_counted_in_bytes() -> None:
    with answering(b"+OK\r\n") as (connection, received):
        connection.command("SET", "é", "")
        assert received == [b"*3\r\n$3\r\nSET\r\n$2\r\n\xc3\xa9\r\n$0\r\n\r\n"]


def test_an_error_is_a_refusal_and_the_next_reply_follows() -> None:
    with answering(b"-ERR invalid argument 'x'\r\n+OK\r\n") as (connection, _):
        with pytest.raises(Refused, match="invalid argument 'x'"):
            connection.command("SET")
        assert connection.receive() == "OK"


@pytest.mark.parametrize(
    ("parts", "why"), [([], "closed it"), ([b"$9\r\nab"], "closed it"), ([b"HTTP/1.1\r\n"], "RESP")]
)
def test_a_server_that_goes_or_speaks_another_protocol_is_named(parts: list[bytes], why: str) -> None:
    with answering(*parts) as (connection, _), pytest.raises(SystemFailed, match=f"{HOST}.*{why}"):
        connection.command("PING")


def test_nobody_there() -> None:
    (port,) = free_ports(1)
    with pytest.raises(SystemFailed, match=f"No server answers at {HOST}:{port}"):
        Connection(HOST, port, 5)
