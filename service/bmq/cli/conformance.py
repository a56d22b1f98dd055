"""`bmq conformance`: plays a file of scenarios against another system."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from bmq.cli.terminal import show_line
from bmq.conformance.adapter import ADAPTERS, find_adapter
from bmq.conformance.verdicts import Result, Verdict, judge, lines_of, load_scenarios, report, sums


def conformance(
    file: Annotated[Path, typer.Argument(help="Scenarios, one JSON object a line (docs/conformance.md).")],
    adapter: Annotated[
        str,
        typer.Option(
            metavar="NAME", help=f"The system to test: {', '.join(ADAPTERS)}, or your own adapter as MODULE:CLASS."
        ),
    ],
    server: Annotated[
        str | None,
        typer.Option(
            help="What the adapter needs to reach the system. For tile38 it is the program.  "
            "[default for tile38: tile38-server on the path]",
            show_default=False,
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Write one JSON object in place of the table.")] = False,
) -> None:
    """Play scenarios against a system, and show what it gets wrong and what it cannot express; exit code 1 if wrong.

    A scenario has passed if all events came. It is wrong if the system took every step, and its answers differ. It
    cannot be expressed if the system has no means for a step or an option; that alone is no failure.
    """
    scenarios = load_scenarios(file)
    verdicts = list(_shown(judge(scenarios, find_adapter(adapter, server)), not as_json))
    counts = sums(verdicts)
    if as_json:
        show_line(report(verdicts, adapter))
    else:
        show_line(
            f"{counts[Result.PASSED]} passed, {counts[Result.WRONG]} wrong, {counts[Result.CANNOT]} cannot be expressed"
        )
    if counts[Result.WRONG]:
        raise typer.Exit(1)


def _shown(verdicts: Iterable[Verdict], in_lines: bool) -> Iterable[Verdict]:
    """Yield the verdicts, each shown as soon as it is there."""
    for verdict in verdicts:
        if in_lines:
            for line in lines_of(verdict):
                show_line(line)
        yield verdict
