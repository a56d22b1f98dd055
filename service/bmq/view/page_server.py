"""The web server of the page: the built files, the stream of updates, and commands.

    GET    /                       the page
    GET    /api/updates            updates, as server-sent events
    GET    /api/events             the last events that fit a filter
    GET    /api/query?id=          versions, replies and members
    PUT    /api/query?id=          put a definition, and return the reply
    DELETE /api/query?id=          delete, and return the reply

Knows HTTP. What changes and who may ask is decided elsewhere.
"""

from pathlib import Path
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bmq.view.live_state import LiveState
from bmq.view.page_commands import MOST_BYTES, Answer, PageCommands
from bmq.view.page_guard import PageGuard, Refusal, security_headers
from bmq.view.update_stream import MOST_BROWSERS, SEND_SECONDS, UpdateStreams

STATIC = Path(__file__).parent / "static"


class PageServer:
    """The application.

    Parameters
    ----------
    setup : what a page needs once: feeds, kinds of tiles, and the like.
    tile_origin : see `security_headers`.
    send_seconds : see `UpdateStreams`.
    """

    def __init__(
        self,
        state: LiveState,
        commands: PageCommands,
        guard: PageGuard,
        setup: dict[str, Any],
        tile_origin: str = "",
        send_seconds: float = SEND_SECONDS,
    ) -> None:
        self._state = state
        self._commands = commands
        self._guard = guard
        self._streams = UpdateStreams(state, {**setup, "read_only": guard.read_only}, send_seconds)
        routes = [
            Route("/", self._page),
            Route("/api/updates", self._updates),
            Route("/api/events", self._events),
            Route("/api/query", self._query, methods=["GET", "PUT", "DELETE"]),
            Mount("/assets", StaticFiles(directory=STATIC / "assets", check_dir=False)),
        ]
        headers = security_headers(tile_origin)
        self.app: ASGIApp = _WithHeaders(Starlette(routes=routes), headers)

    @property
    def n_browsers(self) -> int:
        """How many browsers receive updates."""
        return self._streams.n_browsers

    def end(self) -> None:
        """End the streams of updates, so that the server can stop."""
        self._streams.end()

    async def _page(self, request: Request) -> Response:
        guard = self._guard
        if not guard.token and (refusal := guard.is_own_host(request.headers)):
            return _refuse(refusal)
        page = FileResponse(STATIC / "index.html", headers={"Cache-Control": "no-cache"})
        token = request.query_params.get("token", "")
        if guard.knows(token):
            page.set_cookie(guard.cookie, token, httponly=True, samesite="strict", secure=request.url.scheme == "https")
        return page

    async def _updates(self, request: Request) -> Response:
        if refusal := self._guard.may_read(request.headers, request.cookies):
            return _refuse(refusal)
        if request.method == "HEAD":  # it has no body, so the answer would be endless and empty
            return _refuse(Refusal(405, "Updates have no length. Ask with GET."))
        stream = self._streams.open()
        if stream is None:
            return _refuse(Refusal(503, f"{MOST_BROWSERS} pages are open already. Close one of them."))
        return stream

    async def _events(self, request: Request) -> Response:
        if refusal := self._guard.may_read(request.headers, request.cookies):
            return _refuse(refusal)
        wanted = [request.query_params.get(name, "") for name in ("query", "stream", "kind", "feed")]
        return _json(200, {"events": await run_in_threadpool(self._state.matching_events, *wanted)})

    async def _query(self, request: Request) -> Response:
        query_id = request.query_params.get("id", "")
        if request.method in ("GET", "HEAD"):
            if refusal := self._guard.may_read(request.headers, request.cookies):
                return _refuse(refusal)
            details = await run_in_threadpool(self._state.details, query_id)
            return _json(200, details) if details else _refuse(Refusal(404, "There is no such query now."))
        if refusal := self._guard.may_change(request.headers, request.cookies):
            return _refuse(refusal)
        if request.method == "DELETE":
            return _answer(await run_in_threadpool(self._commands.delete, query_id))
        definition = await _body(request)
        if definition is None:
            return _refuse(Refusal(413, f"A definition has at most {MOST_BYTES:,} bytes."))
        return _answer(await run_in_threadpool(self._commands.put, query_id, definition))


class _WithHeaders:
    """Adds headers to every answer."""

    def __init__(self, app: ASGIApp, headers: dict[str, str]) -> None:
        self._app = app
        self._headers = headers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(self._headers)
                # A browser asks each time whether a file has changed: after an upgrade it must not mix two versions.
                headers.setdefault("Cache-Control", "no-cache")
            await send(message)

        await self._app(scope, receive, send_with_headers)


async def _body(request: Request) -> bytes | None:
    """Return the body, or None if it is too long."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > MOST_BYTES:
            return None
    return body


def _answer(answer: Answer) -> Response:
    return _json(answer.status, answer.body)


def _refuse(refusal: Refusal) -> Response:
    return _json(refusal.status, {"error": {"code": "refused", "message": refusal.message}})


def _json(status: int, value: Any) -> Response:
    body = msgspec.json.encode(value)
    return Response(body, status, media_type="application/json", headers={"Cache-Control": "no-store"})
