"""The plot of a forecast: the noisiest queries, and what is left with each option. Needs matplotlib."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bmq.backtest.noise_counts import QueryNoise
from bmq.backtest.variants import NoiseOption, Variant
from bmq.errors import ServiceError, SetupError

SUFFIXES = (".png", ".svg", ".pdf")
MOST_QUERIES = 25  # bars that can still be read
LONGEST_ID = 30  # characters of a label
INCHES_PER_BAR = 0.3


def check_plot(path: Path) -> None:
    """Refuse a plot that could not be written at the end of a run.

    Raises
    ------
    SetupError
        matplotlib is not installed.
    ServiceError
        The file has another suffix, or its folder is not there.
    """
    if path.suffix.lower() not in SUFFIXES:
        raise ServiceError(f"--plot is {str(path)!r}, which ends with none of {', '.join(SUFFIXES)}. End it with one.")
    if not path.parent.is_dir():
        raise ServiceError(f"--plot is {str(path)!r}, but there is no folder {str(path.parent)!r}. Make it.")
    try:
        import matplotlib as matplotlib
    except ImportError:
        raise SetupError("--plot needs matplotlib, which is not installed: pip install 'bmq[plot]'") from None


def plot_forecast(path: Path, rows: Sequence[QueryNoise], variants: Sequence[Variant]) -> None:
    """Write the plot of a forecast.

    Parameters
    ----------
    path : as `check_plot` accepts it.
    rows : the noisiest first.
    variants : in the order of `QueryNoise.left`.

    Raises
    ------
    ServiceError
        The file cannot be written.
    """
    from matplotlib.figure import Figure  # without pyplot, which looks for a screen

    noisiest = [row for row in rows if row.events][:MOST_QUERIES]
    height = 2.0 + INCHES_PER_BAR * max(len(noisiest), len(variants), 4)
    figure = Figure(figsize=(12.0, height), layout="constrained")
    of_queries, of_variants = figure.subplots(1, 2)
    _draw_queries(of_queries, noisiest)
    _draw_variants(of_variants, rows, variants)
    try:
        figure.savefig(path)
    except OSError as error:
        raise ServiceError(f"--plot {str(path)!r} cannot be written: {error}. Give another name.") from None


def share_left(rows: Sequence[QueryNoise], number: int) -> float | None:
    """Return the share of events that a variant leaves of all queries that can have it; None: no query can."""
    of_both = [(row.events, row.left[number]) for row in rows]
    able = [(events, left) for events, left in of_both if left is not None]
    total = sum(events for events, _ in able)
    return sum(events * left for events, left in able) / total if total else None


def _draw_queries(axes: Any, rows: Sequence[QueryNoise]) -> None:
    rates = [row.per_stream_day for row in rows]
    has_rates = None not in rates
    numbers = rates if has_rates else [row.events for row in rows]
    labels = [row.query_id if len(row.query_id) <= LONGEST_ID else f"{row.query_id[:LONGEST_ID]}…" for row in rows]
    axes.barh(range(len(rows)), numbers, color="tab:blue")
    axes.set_yticks(range(len(rows)), [label.replace("$", r"\$") for label in labels])  # a $ would begin a formula
    axes.invert_yaxis()
    axes.set_xlabel("events per stream and day" if has_rates else "events")
    axes.set_title("Noisiest queries")


def _draw_variants(axes: Any, rows: Sequence[QueryNoise], variants: Sequence[Variant]) -> None:
    colours = dict(zip(NoiseOption, ("tab:orange", "tab:green", "tab:purple"), strict=True))
    shares = [share_left(rows, number) for number in range(len(variants))]
    percents = [100.0 * (share or 0.0) for share in shares]
    bars = axes.barh(range(len(variants)), percents, color=[colours[variant.option] for variant in variants])
    axes.bar_label(bars, ["no query can" if share is None else f"{share:.0%}" for share in shares], padding=3)
    axes.set_yticks(range(len(variants)), [str(variant) for variant in variants])
    axes.invert_yaxis()
    axes.set_xlim(0.0, max(115.0, *(1.15 * percent for percent in percents)))
    axes.set_xlabel("events left, %")
    axes.set_title("With an option")
