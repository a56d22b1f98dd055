"""`bmq demo`: the whole service on generated streams."""

import signal
from enum import StrEnum
from typing import Annotated

import typer


class World(StrEnum):
    """The streams that the demo can generate."""

    STOCKS = "stocks"
    VEHICLES = "vehicles"


def demo(
    world: Annotated[World, typer.Argument(help="Which streams to generate.")] = World.VEHICLES,
    rate: Annotated[float, typer.Option("--rate", help="Readings a second.", min=1)] = 3_000,
    seconds: Annotated[
        float | None,
        typer.Option("--seconds", help="End after so long.  [default: with Ctrl-C]", min=1, show_default=False),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="The same seed gives the same streams and queries.", min=0)] = 0,
) -> None:
    """Run Kafka, the service, generated streams and queries, and show the crossings live."""
    from bmq.demo.run import run, stocks_scene, vehicles_scene

    # Otherwise SIGTERM would leave the folder of the demo behind.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    scene = stocks_scene(seed) if world is World.STOCKS else vehicles_scene(seed)
    run(scene, rate, seconds)
