"""The live page of one service, from its configuration to an address: reading, serving, and the end of both."""

import re
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlsplit

import uvicorn

from bmq.client import Client
from bmq.config import Config
from bmq.errors import SetupError
from bmq.kafka_io.schema_registry import SchemaRegistry, configured_registry
from bmq.view.broker_watch import BrokerWatch
from bmq.view.figures import MetricsPlace
from bmq.view.followed_topics import FollowedTopics
from bmq.view.live_state import LiveState
from bmq.view.page_commands import PageCommands
from bmq.view.page_guard import LOOPBACK, PageGuard
from bmq.view.page_server import STATIC, PageServer
from bmq.view.service_figures import ServiceFigures
from bmq.view.update_stream import SEND_SECONDS

START_SECONDS = 20.0
EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}  # noqa: S104  # addresses to listen at, and to open instead


@dataclass(frozen=True, slots=True)
class PageOptions:
    """How the page is served.

    Attributes
    ----------
    port : 0 for any free port.
    token : "" for none, which only this machine's own addresses allow.
    tiles : the template of a tile server's addresses, with {z}, {x} and {y}; "": the built-in world map alone.
    tiles_credit : what the licence of the tiles wants to be shown.
    """

    host: str = "127.0.0.1"
    port: int = 8108
    token: str = field(default="", repr=False)
    read_only: bool = False
    tiles: str = ""
    tiles_credit: str = ""


@contextmanager
def live_page(config: Config, servers: str, options: PageOptions, metrics: MetricsPlace) -> Iterator[str]:
    """Yield the address of the page while it is served.

    1. Check the options and bind the port, before anything else is started.
    2. Read the topics and the metrics into the state.
    3. Serve, and end everything in the reverse order.

    Raises
    ------
    SetupError
        An option is wrong, the port cannot be bound, or another machine could open the page without a token.
    """
    if options.host not in LOOPBACK and not options.token:
        raise SetupError(f"The page at {options.host} could be opened by other machines. Set a token, too.")
    check_token(options.token)
    tiles = tile_origin(options.tiles)
    if not (STATIC / "index.html").exists():
        raise SetupError("The built files of the page are missing. In a checkout: make web")
    feeds = config.feed_records()
    kafka = config.with_broker(servers).kafka.client_options()
    with ExitStack() as stack:
        listener = stack.enter_context(listen(options))  # 1
        port = listener.getsockname()[1]
        client = stack.enter_context(Client(servers, kafka, config.topics))
        state = LiveState(feeds, members_of_events=config.topics.membership is None)
        registry = configured_registry(config)
        topics = FollowedTopics(  # 2
            kafka, config.topics, feeds, state, None if registry is None else SchemaRegistry(registry)
        )
        topics.start()
        stack.callback(topics.stop)
        broker = BrokerWatch(kafka, state.set_trouble)
        broker.start()
        stack.callback(broker.stop)
        figures = ServiceFigures(metrics, state.set_health)
        figures.start()
        stack.callback(figures.stop)
        commands = PageCommands(client, config.installation())
        guard = PageGuard(port, options.token, options.read_only)
        server = PageServer(state, commands, guard, page_setup(config, options), tiles)
        stack.enter_context(served(server, listener))  # 3
        yield address(options, port)


def page_setup(config: Config, options: PageOptions) -> dict[str, Any]:
    """Return what a page needs once."""
    feeds: Mapping[str, Any] = {
        name: {
            "dimensions": feed.dimensions,
            "lonlat": feed.space == "lonlat",
            "attributes": feed.attributes,
            "join": feed.join,
        }
        for name, feed in config.feeds.items()
    }
    topics = config.topics
    return {
        "feeds": feeds,
        "tiles": options.tiles,
        "tiles_credit": options.tiles_credit,
        "members_exact": topics.membership is not None,
    }


def address(options: PageOptions, port: int) -> str:
    """Return the address to open in a browser."""
    host = EVERYWHERE.get(options.host, f"[{options.host}]" if ":" in options.host else options.host)
    return f"http://{host}:{port}/" + (f"?token={quote(options.token, safe='')}" if options.token else "")


def tile_origin(tiles: str) -> str:
    """Return scheme and host of a tile server.

    Raises
    ------
    SetupError
        The template is no address of tiles.
    """
    if not tiles:
        return ""
    if not _is_template(tiles):
        raise SetupError(
            f"{tiles!r} is no template of tiles. Write an address such as https://tiles.example.org/{{z}}/{{x}}/{{y}}.png"
        )
    parts = urlsplit(tiles)
    return f"{parts.scheme}://{parts.netloc}"


def _is_template(tiles: str) -> bool:
    """Return whether an address has the places of a tile and no other ones, and a host that a policy can name."""
    places = set(re.findall(r"{[^}]*}?", tiles))
    try:
        parts = urlsplit(tiles)
        has_host = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        return False
    is_plain = parts.netloc.isascii() and not set(parts.netloc) & set(" ;,'\"{}@")
    return parts.scheme in ("http", "https") and has_host and is_plain and places == {"{z}", "{x}", "{y}"}


def check_token(token: str) -> None:
    """Raise SetupError if a token cannot stand in a cookie and in a header."""
    if not all("!" <= letter <= "~" for letter in token):
        raise SetupError("The token may have ASCII letters, digits and signs only, and no space. Choose another one.")


def listen(options: PageOptions) -> socket.socket:
    """Return a socket that is bound to the address of the page."""
    try:
        family, *_, where = socket.getaddrinfo(options.host, options.port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if hasattr(socket, "TCP_USER_TIMEOUT"):  # a client that takes nothing must not keep a connection for ever
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(SEND_SECONDS * 1000))
        listener.bind(where)
    except OSError as error:
        raise SetupError(
            f"The page cannot be served at {options.host}:{options.port}: {error.strerror}. "
            "Name another port with --port, or 0 for any free one."
        ) from error
    return listener


@contextmanager
def served(page: PageServer, listener: socket.socket) -> Iterator[None]:
    """Serve a page while the block runs."""
    settings = uvicorn.Config(
        page.app,
        http="h11",
        ws="none",
        loop="asyncio",
        log_level="warning",
        access_log=False,
        server_header=False,
        lifespan="off",
        timeout_graceful_shutdown=2,
        limit_concurrency=200,
    )
    server = uvicorn.Server(settings)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, name="view-server", daemon=True)
    thread.start()
    deadline = time.monotonic() + START_SECONDS
    try:
        while not server.started:
            if not thread.is_alive() or time.monotonic() > deadline:
                raise SetupError("The server of the page did not start; its log is above.")
            time.sleep(0.02)
        yield
    finally:
        page.end()
        server.should_exit = True
        thread.join(START_SECONDS)
