"""One connection that speaks RESP 2, the protocol of Redis and of Tile38. Knows bytes and sockets, and no command."""

import socket

from bmq.conformance.adapter import SystemFailed

Reply = str | int | None | list["Reply"]

_CHUNK = 1 << 16


class Refused(Exception):
    """The server answered a command with an error; the message is the server's."""


class Connection:
    """A connection to a server of RESP.

    Parameters
    ----------
    limit_seconds : how long a reply may take.

    Raises
    ------
    SystemFailed
        Nobody answers there. Every method raises it, too, if the connection breaks or a reply takes too long.
    """

    def __init__(self, host: str, port: int, limit_seconds: float) -> None:
        self._name = f"{host}:{port}"
        self._buffer = b""
        try:
            self._socket = socket.create_connection((host, port), limit_seconds)
        except OSError as error:
            raise SystemFailed(f"No server answers at {self._name}: {error}. Start it, or name another one.") from None
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def command(self, *words: str) -> Reply:
        """Send a command and return its reply.

        Raises
        ------
        Refused
            The server answers with an error.
        """
        encoded = [word.encode() for word in words]
        self._send(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in encoded))
        return self.receive()

    def receive(self) -> Reply:
        """Return the next reply, or the next message of a channel.

        Raises
        ------
        Refused
            It is an error.
        """
        kind, rest = (line := self._line())[:1], line[1:]
        match kind:
            case b"+":
                return rest.decode()
            case b"-":
                raise Refused(rest.decode())
            case b":":
                return int(rest)
            case b"$":
                return None if rest == b"-1" else self._bytes(int(rest)).decode()
            case b"*":
                return None if rest == b"-1" else [self.receive() for _ in range(int(rest))]
        raise SystemFailed(f"{self._name} answered {line!r}, which is not RESP. Name a server that speaks it.")

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def _line(self) -> bytes:
        while b"\r\n" not in self._buffer:
            self._fill()
        line, self._buffer = self._buffer.split(b"\r\n", 1)
        return line

    def _bytes(self, n: int) -> bytes:
        while len(self._buffer) < n + 2:
            self._fill()
        found, self._buffer = self._buffer[:n], self._buffer[n + 2 :]
        return found

    def _send(self, request: bytes) -> None:
        try:
            self._socket.sendall(request)
        except OSError as error:
            raise self._broken(str(error)) from None

    def _fill(self) -> None:
        try:
            part = self._socket.recv(_CHUNK)
        except OSError as error:
            raise self._broken(str(error)) from None
        if not part:
            raise self._broken("the server closed it")
        self._buffer += part

    def _broken(self, why: str) -> SystemFailed:
        return SystemFailed(f"The connection to {self._name} broke: {why}. Look at the server, and run it again.")
