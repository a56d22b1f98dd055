"""`bmq capacity`: how much of a machine a load takes, from measured costs."""

import os
from typing import Annotated

import typer

from bmq.cli.terminal import show_line
from bmq.sizing import MEASURED, Load, Machine, lines, sizing

GIGABYTE = 1e9


def capacity(
    streams: Annotated[int, typer.Option(min=0, help="How many streams there are.")],
    queries: Annotated[int, typer.Option(min=0, help="How many queries.")],
    rate: Annotated[float, typer.Option(min=0, help="Readings a second, of all streams together.")],
    crossings: Annotated[float, typer.Option(min=0, help="Borders that a reading crosses on average.")] = 0.1,
    shards: Annotated[
        int | None, typer.Option(min=1, max=1024, help="job.shards; without it, as many as are needed.")
    ] = None,
    cores: Annotated[
        int | None, typer.Option(min=1, help="Cores of the service; without it, those of this machine.")
    ] = None,
    memory_gb: Annotated[
        float | None, typer.Option(min=1, help="Memory of the service; without it, this machine's.")
    ] = None,
) -> None:
    """Show how much of a machine a load takes, and what breaks first.

    It reckons with costs that were measured on one kind of machine, for boxes in two dimensions: docs/capacity.md.
    """
    memory = memory_gb * GIGABYTE if memory_gb is not None else os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    machine = Machine(cores or os.cpu_count() or 1, memory)
    for line in lines(sizing(Load(streams, queries, rate, crossings), machine, MEASURED, shards)):
        show_line(line)
