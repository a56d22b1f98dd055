"""`bmq view`: the live page."""

import secrets
import signal
import threading
from typing import Annotated
from urllib.parse import urlsplit

import typer

from bmq.cli.target import USUAL_CONFIG, BootstrapOption, ConfigOption, find_target
from bmq.errors import ConfigError

PAGE_PORT = 8108


def view(
    host: Annotated[
        str, typer.Option("--host", help="Address to listen at. Another one than this machine's own needs a token.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", help="Port to listen at; 0: a free one.", min=0, max=65535)
    ] = PAGE_PORT,
    token: Annotated[
        str | None,
        typer.Option(
            "--token",
            envvar="BMQ_VIEW_TOKEN",
            help="Needed to open the page.  [default: none for 127.0.0.1, else a random one, which is printed]",
            show_default=False,
        ),
    ] = None,
    read_only: Annotated[bool, typer.Option("--read-only", help="Show everything, and change nothing.")] = False,
    tiles: Annotated[
        str,
        typer.Option("--tiles", metavar="URL", help="Tiles of a map, with {z}, {x} and {y}.  [default: a world map]"),
    ] = "",
    tiles_credit: Annotated[str, typer.Option("--tiles-credit", help="What the licence of the tiles demands.")] = "",
    metrics: Annotated[
        str,
        typer.Option(
            "--metrics", metavar="URL", help="Address of the service's metrics.  [default: that of the configuration]"
        ),
    ] = "",
    opens: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in a browser.")] = False,
    config: ConfigOption = None,
    bootstrap: BootstrapOption = None,
) -> None:
    """Serve a page with live maps, charts, queries and the service's health, until Ctrl-C."""
    from bmq.view.figures import MetricsPlace
    from bmq.view.live_page import PageOptions, live_page
    from bmq.view.open_browser import open_browser
    from bmq.view.page_guard import LOOPBACK

    target = find_target(config, bootstrap)
    if target.config is None:
        raise ConfigError(
            f"The page needs the feeds of a configuration. There is no {USUAL_CONFIG}: name one with --config"
        )
    is_made = token is None and host not in LOOPBACK
    if is_made:
        token = secrets.token_urlsafe(24)
    section = target.config.metrics
    place = MetricsPlace(
        section.port, section.host, section.certificate, section.user, section.password, checked_url(metrics)
    )
    options = PageOptions(host, port, token or "", read_only, tiles, tiles_credit)
    asked = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: asked.set())
    with live_page(target.config, target.servers, options, place) as address:
        typer.echo(f"The page is at {printed_address(address, is_made=is_made)}  Ctrl-C ends it.")
        if opens:
            open_browser(address)
        asked.wait()


def checked_url(metrics: str) -> str:
    """Return the address of the metrics, or raise `BadParameter` if the text is not an address."""
    try:
        parts = urlsplit(metrics)
        is_right = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_right = False
    if metrics and not is_right:
        raise typer.BadParameter(
            f"{metrics!r} is no address. Write one such as http://bmq.example:9108/metrics", param_hint="--metrics"
        )
    return metrics


def printed_address(address: str, *, is_made: bool) -> str:
    """Return the address as it may stand in a log: with the token only if nobody knows it yet."""
    base, mark, _ = address.partition("?")
    return address if is_made or not mark else f"{base}?token=..., with the token that you set."
