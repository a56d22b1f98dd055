"""Plots as SVG from the CSV files alone: `python -m bench.figures.plot`."""

import math
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
from matplotlib.artist import Artist
from matplotlib.axes import Axes

from bench.figures.figure import FOLDER, Point, read

_LOG = " (log)"
_MARKERS = "osD^vP*X<>"

# No date and no random names: the same numbers give the same file.
mpl.use("svg")
mpl.rcParams.update({"svg.hashsalt": "bmq", "svg.fonttype": "none", "font.size": 9})


def main() -> None:
    """Plot every CSV file of the results."""
    for path in sorted(FOLDER.glob("*.csv")):
        print(plot(path).name)


def plot(path: Path) -> Path:
    """Write the plot of one CSV file beside it and return its path."""
    head, points = read(path)
    panels = [name.removeprefix("panel ") for name in head if name.startswith("panel ")]
    figure, axes = plt.subplots(1, len(panels), figsize=(4.6 * len(panels), 3.6), squeeze=False)
    # A series looks the same in every panel, and may be missing in some.
    numbers = {series: number for number, series in enumerate(dict.fromkeys(point.series for point in points))}
    legend: dict[str, Artist] = {}
    for panel, place in zip(panels, axes[0], strict=True):
        own = [point for point in points if point.panel == panel]
        _draw(place, own, numbers, head.get(f"x of {panel}", head["x"]), head[f"panel {panel}"])
        handles, labels = place.get_legend_handles_labels()
        legend |= dict(zip(labels, handles, strict=True))
    figure.suptitle(
        f"{head['title']}: {head['source']}\n{head['machine']}, {head['commit']}, {head['scale']}", fontsize=8
    )
    n_columns = 2 * len(panels) + 1
    figure.legend(legend.values(), legend.keys(), loc="lower center", ncols=n_columns, fontsize=7, frameon=False)
    # As much room below as the rows of the legend take.
    figure.tight_layout(rect=(0, 0.02 + 0.045 * math.ceil(len(legend) / n_columns), 1, 1))
    target = path.with_suffix(".svg")
    figure.savefig(target, metadata={"Date": None})
    plt.close(figure)
    return target


def _draw(axes: Axes, points: list[Point], numbers: dict[str, int], x_label: str, y_label: str) -> None:
    for series, number in numbers.items():
        own = [point for point in points if point.series == series]
        if not own:
            continue
        medians = [point.median for point in own]
        spread = [
            [point.median - point.min for point in own],
            [point.max - point.median for point in own],
        ]
        axes.errorbar(
            [point.x for point in own],
            medians,
            yerr=spread,
            label=series,
            color=f"C{number % 10}",
            marker=_MARKERS[number % len(_MARKERS)],
            ms=3.5,
            lw=1,
            capsize=2,
        )
    axes.set_xlabel(x_label.removesuffix(_LOG))
    axes.set_ylabel(y_label.removesuffix(_LOG))
    if x_label.endswith(_LOG):
        axes.set_xscale("log")
    if y_label.endswith(_LOG):
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)


if __name__ == "__main__":
    main()
