"""`bmq demo`: the whole service on generated streams."""

import signal
import sys
from enum import StrEnum
from typing import Annotated

import typer

from bmq.broker.ports import is_free, require_free
from bmq.cli.view import PAGE_PORT


class World(StrEnum):
    """The streams that the demo can generate."""

    STOCKS = "stocks"
    VEHICLES = "vehicles"
    FLIGHTS = "flights"
    ALL = "all"


def demo(
    world: Annotated[World, typer.Argument(help="Which streams to generate.")] = World.VEHICLES,
    rate: Annotated[float, typer.Option("--rate", help="Readings a second.", min=1)] = 3_000,
    seconds: Annotated[
        float | None,
        typer.Option("--seconds", help="End after so long.  [default: with Ctrl-C]", min=1, show_default=False),
    ] = None,
    page: Annotated[bool, typer.Option("--page/--no-page", help="Serve the live page of bmq view, too.")] = True,
    port: Annotated[
        int | None,
        typer.Option(
            "--port",
            help=f"Port of the page; 0: a free one.  [default: {PAGE_PORT}, or a free one if it is taken]",
            min=0,
            max=65535,
            show_default=False,
        ),
    ] = None,
    opens: Annotated[
        bool | None,
        typer.Option(
            "--open/--no-open", help="Open the page in a browser.  [default: on a terminal]", show_default=False
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="The same seed gives the same streams and queries.", min=0)] = 0,
) -> None:
    """Run Kafka, the service, generated streams and queries, and show the crossings live."""
    if not page and (port is not None or opens):
        raise typer.BadParameter(
            "There is no page with --no-page. Leave out one of the two.", param_hint="--port, --open"
        )
    if port:
        require_free(port)  # now, and not when Kafka and Spark have started
    from bmq.demo.run import SCENES, run
    from bmq.view.live_page import PageOptions

    # Otherwise SIGTERM would leave the folder of the demo behind.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if port is None:
        port = PAGE_PORT if is_free(PAGE_PORT) else 0
    shown = PageOptions(port=port) if page else None
    run(SCENES[world.value](seed), rate, seconds, shown, opens=sys.stdout.isatty() if opens is None else opens)
