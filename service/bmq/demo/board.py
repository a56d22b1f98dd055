"""The output of the demo: a live board on a terminal, plain lines everywhere else."""

import sys
from collections.abc import Sequence
from types import TracebackType
from typing import Protocol, Self

from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from bmq.view.figures import Figures

SHOWN_CROSSINGS = 14  # with the numbers above them, the board fits into 24 lines


class View(Protocol):
    """Shows the state of the demo while it runs."""

    def __enter__(self) -> Self:
        """Start the output."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the output and restore the terminal."""

    def show(self, seconds: float, last: Figures, span: float, latest: Sequence[str]) -> None:
        """Show the state.

        Parameters
        ----------
        seconds : time since the first reading.
        last, span : the counters of the last ``span`` seconds.
        latest : the latest crossings as sentences, the newest last.
        """


class PlainView:
    """Prints one line at a time, for pipes and logs."""

    refresh_seconds = 2.0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def show(self, seconds: float, last: Figures, span: float, latest: Sequence[str]) -> None:
        """Print one line."""
        newest = latest[-1] if latest else "no crossing yet"
        numbers = ", ".join(f"{name} {text}" for name, text in describe(last, span))
        print(f"{seconds:5.0f} s  {numbers}  |  {newest}", flush=True)


class LiveView:
    """A board that is redrawn in place."""

    refresh_seconds = 0.5

    def __init__(self, title: str, console: Console) -> None:
        self._title = title
        self._live = Live(console=console, auto_refresh=False)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def show(self, seconds: float, last: Figures, span: float, latest: Sequence[str]) -> None:
        """Draw the board."""
        numbers = Table.grid(padding=(0, 3))
        described = describe(last, span)
        numbers.add_row(*(Text(name, style="dim") for name, _ in described))
        numbers.add_row(*(Text(text, style="bold") for _, text in described))
        crossings = [
            Text(line, style="green" if " entered " in line else "yellow", no_wrap=True, overflow="ellipsis")
            for line in latest[-SHOWN_CROSSINGS:]
        ]
        title = f"{self._title}, {seconds:.0f} s"
        board = Panel(Group(numbers, Text(), *crossings), title=title, subtitle="Ctrl-C ends", title_align="left")
        self._live.update(board, refresh=True)


def make_view(title: str) -> PlainView | LiveView:
    """Return the view for the kind of output: a terminal, or anything else."""
    return LiveView(title, Console()) if sys.stdout.isatty() else PlainView()


def describe(figures: Figures, span: float) -> list[tuple[str, str]]:
    """Return (name, number) of each figure to show, for the counters of ``span`` seconds."""
    return [
        ("readings/s", f"{figures.readings / span:,.0f}"),
        ("events/s", f"{figures.events / span:,.0f}"),
        ("latency p50", _seconds(figures.latency_at(0.5))),
        ("p99", _seconds(figures.latency_at(0.99))),
        ("batch", _seconds(figures.seconds_per_batch or None)),
        ("queries", f"{figures.queries:,.0f}"),
        ("streams", f"{figures.streams:,.0f}"),
    ]


def _seconds(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds:.2f} s"
