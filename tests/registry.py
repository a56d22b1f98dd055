"""A schema registry in this process: the part of its REST interface that the service uses, with basic authentication.

Karapace is not on PyPI, and nobody has looked whether Apicurio's can be started from Maven Central. So this one answers
as Confluent's documents say, with their codes, and a real registry has not been tried.
"""

import json
import threading
from base64 import b64decode
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from bmq.broker.ports import HOST, free_ports


def framed(schema_id: int, record: bytes) -> bytes:
    """Return a record with the header that a registry's serializer writes."""
    return b"\0" + schema_id.to_bytes(4, "big") + record


class Registry:
    """Schemas by id, served from `start` until `stop`; it may be started again at the same address.

    Attributes
    ----------
    answers : id -> the JSON object of its answer.
    status : what it answers with instead, if it is not 0.
    asked : the paths of all requests that were let in.
    """

    def __init__(self, user: str = "", password: str = "") -> None:
        (self._port,) = free_ports(1)
        self._login = f"{user}:{password}"
        self._server: ThreadingHTTPServer | None = None
        self.answers: dict[int, dict[str, Any]] = {}
        self.status = 0
        self.asked: list[str] = []

    @property
    def url(self) -> str:
        """The address."""
        return f"http://{HOST}:{self._port}"

    def register(self, schema_id: int, schema: object) -> None:
        """Add an Avro schema."""
        self.answers[schema_id] = {"schema": json.dumps(schema)}

    def start(self) -> None:
        """Answer from now on, if it does not yet."""
        registry = self
        if self._server is not None:
            return

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                status, answer = registry.answer(self.path, self.headers.get("Authorization", ""))
                body = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *arguments: object) -> None:
                pass

        self._server = ThreadingHTTPServer((HOST, self._port), Handler)
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self) -> None:
        """Answer no more."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def answer(self, path: str, authorization: str) -> tuple[int, object]:
        """Return status and JSON of the answer to a request."""
        given = b64decode(authorization.removeprefix("Basic ")).decode() if authorization else ":"
        if given != self._login:
            return 401, {"error_code": 401, "message": "Unauthorized"}
        self.asked.append(path)
        if self.status:
            return self.status, {}
        if path == "/subjects":
            return 200, []
        folder, _, schema_id = path.rpartition("/")
        if folder != "/schemas/ids":
            return 404, {"error_code": 404, "message": "HTTP 404 Not Found"}
        found = self.answers.get(int(schema_id))
        return (200, found) if found else (404, {"error_code": 40403, "message": f"Schema {schema_id} not found"})
