"""Measures figures, writes their CSV files and plots: `python -m bench.figures [--full] [NAME ...]`."""

import argparse
import importlib
import pkgutil
import time
from collections.abc import Iterator
from types import ModuleType

import bench.figures
from bench.figures.figure import Figure, Point, Scale, write
from bench.figures.plot import plot


def main() -> None:
    """Measure the figures that are named, or all."""
    figures = {figure.name: figure for figure in all_figures()}
    parser = argparse.ArgumentParser(prog="python -m bench.figures", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of: {', '.join(figures)}; none: all")
    parser.add_argument("--full", action="store_true", help="every point of the papers' grids")
    arguments = parser.parse_args()
    unknown = sorted(set(arguments.names) - set(figures))
    if unknown:
        parser.error(f"there is no figure {unknown[0]!r}; there are: {', '.join(figures)}")
    scale = Scale.FULL if arguments.full else Scale.REDUCED
    for name in arguments.names or figures:
        start = time.monotonic()
        path = write(figures[name], scale, list(_shown(figures[name].measure(scale))))
        print(f"{name}: {plot(path).name} ({time.monotonic() - start:.0f} s)", flush=True)


def all_figures() -> list[Figure]:
    """Return the figure of each module here that has one, by name."""
    return [module.FIGURE for module in figure_modules()]


def figure_modules() -> list[ModuleType]:
    """Return the modules here that have a figure, by name."""
    names = [found.name for found in pkgutil.iter_modules(bench.figures.__path__) if not found.name.startswith("__")]
    modules = (importlib.import_module(f"bench.figures.{name}") for name in names)
    return [module for module in modules if hasattr(module, "FIGURE")]


def _shown(points: Iterator[Point]) -> Iterator[Point]:
    """Yield the points, and print each: a run of minutes is to be seen."""
    for point in points:
        print(f"  {point.panel},{point.series},{point.x},{point.median:.4g}", flush=True)
        yield point


if __name__ == "__main__":
    main()
