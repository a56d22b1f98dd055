"""The HTTP endpoint: `/metrics`, for those who may see it, and `/health`, for all. Knows no metric.

With a certificate it speaks TLS, and with a user it asks for a password. `/health` needs none: it has no name and no
number of a stream or a query, and what looks after a service often cannot send one.
"""

import base64
import hmac
import socket
import ssl
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client.exposition import ThreadingWSGIServer

from bmq.errors import SetupError
from bmq.metrics.health import Health, answer

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


@dataclass(frozen=True, slots=True)
class Place:
    """Where the endpoint listens, and for whom.

    Attributes
    ----------
    port : 0 for any free port.
    certificate, key : files in PEM; empty: no TLS.
    user, password : of basic authentication; empty: none.
    """

    port: int
    host: str = "127.0.0.1"
    certificate: str = ""
    key: str = ""
    user: str = ""
    password: str = ""


class Endpoint:
    """A server on threads of its own.

    Parameters
    ----------
    show : answers `/metrics`.
    """

    def __init__(self, place: Place, show: Application, health: Health) -> None:
        self._place = place
        self._show = show
        self._health = health
        self._server: WSGIServer | None = None

    def start(self) -> int:
        """Serve until `stop`; return the port.

        Raises
        ------
        SetupError : the port cannot be bound, or the certificate cannot be read.
        """
        place = self._place
        context = _tls(place)
        try:
            family, *_ = socket.getaddrinfo(place.host, place.port, type=socket.SOCK_STREAM)[0]
            server_class = type("_Server", (ThreadingWSGIServer,), {"address_family": family})
            server: WSGIServer = make_server(
                place.host, place.port, self._answer, server_class, handler_class=_SilentHandler
            )
        except OSError as error:
            raise SetupError(
                f"Metrics cannot be served at {place.host}:{place.port}: {error.strerror}. "
                "Stop what listens there, or set another port under [metrics] in the configuration."
            ) from error
        if context is not None:
            # The handshake comes with the first byte that is read, on the thread of the request: a client that is slow
            # with it holds up nobody.
            server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        self._server = server
        threading.Thread(target=server.serve_forever, name="bmq-metrics", daemon=True).start()
        return int(server.server_port)

    def stop(self) -> None:
        """Stop serving and free the port; do nothing if the server does not run."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def _answer(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        path = environ["PATH_INFO"]
        if path.startswith("/health"):
            status, body = answer(self._health, path)
            start_response(f"{status.value} {status.phrase}", [("Content-Type", "application/json")])
            return [body]
        if not self._may_see(environ.get("HTTP_AUTHORIZATION", "")):
            unauthorized = HTTPStatus.UNAUTHORIZED
            headers = [("WWW-Authenticate", 'Basic realm="bmq"'), ("Content-Type", "text/plain")]
            start_response(f"{unauthorized.value} {unauthorized.phrase}", headers)
            return [b"The user or the password is wrong or missing (metrics.user, metrics.password).\n"]
        return self._show(environ, start_response)

    def _may_see(self, authorization: str) -> bool:
        place = self._place
        if not place.user:
            return True
        expected = base64.b64encode(f"{place.user}:{place.password}".encode()).decode()
        return hmac.compare_digest(authorization.encode(), f"Basic {expected}".encode())


def _tls(place: Place) -> ssl.SSLContext | None:
    if not place.certificate:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(place.certificate, place.key)
    except (OSError, ssl.SSLError) as error:
        raise SetupError(
            f"The certificate of the metrics cannot be used: {error} (metrics.certificate = {place.certificate!r}, "
            f"metrics.key = {place.key!r}). Both are files in PEM, and the key is without a password."
        ) from error
    return context


class _SilentHandler(WSGIRequestHandler):
    """Does not log each request."""

    def log_message(self, format: str, *args: object) -> None:
        """Do nothing."""
