"""`bmq capacity`: how large a machine must be for so many streams, queries and readings."""

from typing import Annotated

import typer
from rich.filesize import decimal

from bmq.cli.terminal import show_line
from bmq.sizing import BUSY_SHARE, Demand, need


def capacity(
    streams: Annotated[int, typer.Option(min=1, help="Streams of all feeds.")],
    queries: Annotated[int, typer.Option(min=0, help="Standing queries.")],
    rate: Annotated[float, typer.Option(min=0, help="Readings a second, of all feeds.")],
    events_per_reading: Annotated[float, typer.Option(min=0, help="Events of one reading, on average.")] = 0.1,
) -> None:
    """Show the cores, memory, disk and network that a demand takes, from measured costs.

    The costs are of one machine and of border queries with boxes; docs/capacity.md has them and what they leave out.
    """
    found = need(Demand(streams, queries, rate, events_per_reading))
    show_line(
        f"{streams:,} streams, {queries:,} queries, {rate:,.0f} readings/s, {events_per_reading:g} events a reading"
    )
    show_line(f"cores       {found.cores:,} ({found.busy_cores:,.2f} busy; {BUSY_SHARE:.0%} of them at most)")
    show_line(f"shards      {found.cores:,}, one for each core, of {decimal(found.home_bytes)} each")
    show_line(f"memory      {decimal(found.memory_bytes)} in all, with one JVM")
    show_line(f"checkpoint  {decimal(found.checkpoint_bytes)}")
    show_line(f"from Kafka  {decimal(round(found.in_bytes))}/s before compression")
    show_line(f"to Kafka    {decimal(round(found.out_bytes))}/s before compression")
