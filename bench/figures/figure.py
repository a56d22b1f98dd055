"""What a figure is: a claim, panels, and points that were measured. Knows how they stand in a CSV file.

The file says all that a plot shows, so that plots are made from it alone (`plot`).
"""

import csv
import enum
import os
import platform
import subprocess
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "results" / "figures"
_FIELDS = ("panel", "series", "x", "min", "median", "max")


class Scale(enum.Enum):
    """How much of the papers' grid is measured."""

    SMOKE = "smoke"  # seconds; for tests: the numbers mean nothing
    REDUCED = "reduced"  # all figures within 20 minutes: the ends of each axis and some points between
    FULL = "full"  # every point


@dataclass(frozen=True, slots=True)
class Point:
    """One measured point of one series.

    Attributes
    ----------
    panel : which panel it belongs to, by `Panel.name`.
    series : what was measured, such as `BMQ-Index` or `DiffRMQ (CEI)`.
    x : a number, or a word where the axis has words.
    min, median, max : of the rounds; equal for what is counted and not timed.
    """

    panel: str
    series: str
    x: float | str
    min: float
    median: float
    max: float


@dataclass(frozen=True, slots=True)
class Panel:
    """One set of axes: its name, the label of y with its unit, whether y is logarithmic.

    ``x`` is its own label of x, where that is not the figure's.
    """

    name: str
    y: str
    log_y: bool = False
    x: str = ""


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure and how to measure it.

    Attributes
    ----------
    name : the module's and the files' name.
    source : the papers' figures that it reproduces, or "beyond the papers".
    claim : what it is to show, in one sentence.
    setup : the papers' setup and ours where it departs, in one sentence.
    x : label of the x axis, with unit.
    panels : at least one; every point names one of them.
    measure : yields the points; checks the answers before it yields a time.
    log_x : whether x is logarithmic.
    """

    name: str
    source: str
    claim: str
    setup: str
    x: str
    panels: tuple[Panel, ...]
    measure: Callable[[Scale], Iterator[Point]]
    log_x: bool = False


def counted(panel: str, series: str, x: float | str, number: float) -> Point:
    """Return a point that was counted and has no spread."""
    return Point(panel, series, x, number, number, number)


def write(figure: Figure, scale: Scale, points: Iterable[Point], folder: Path = FOLDER) -> Path:
    """Write a figure's CSV file into ``folder`` and return its path."""
    log_x = " (log)" if figure.log_x else ""
    head = {
        "title": figure.name,
        "source": figure.source,
        "claim": figure.claim,
        "setup": figure.setup,
        "x": figure.x + log_x,
        **{f"x of {panel.name}": panel.x + log_x for panel in figure.panels if panel.x},
        **{f"panel {panel.name}": panel.y + (" (log)" if panel.log_y else "") for panel in figure.panels},
        "scale": scale.value,
        "commit": commit(),
        "machine": machine(),
    }
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{figure.name}.csv"
    with path.open("w", newline="") as file:
        file.writelines(f"# {name}: {text}\n" for name, text in head.items())
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(_FIELDS)
        for point in points:
            numbers = [f"{number:.6g}" for number in (point.min, point.median, point.max)]
            x = point.x if isinstance(point.x, str) else f"{point.x:.6g}"
            rows.writerow((point.panel, point.series, x, *numbers))
    return path


def read(path: Path) -> tuple[dict[str, str], list[Point]]:
    """Return a CSV file's head and its points."""
    head: dict[str, str] = {}
    points = []
    with path.open(newline="") as file:
        lines = file.readlines()
    while lines and lines[0].startswith("# "):
        name, _, text = lines.pop(0)[2:].strip().partition(": ")
        head[name] = text
    for row in csv.DictReader(lines):
        points.append(
            Point(row["panel"], row["series"], _number(row["x"]), *(float(row[name]) for name in _FIELDS[3:]))
        )
    return head, points


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def commit() -> str:
    """Return the commit that is checked out, with `-dirty` where code that is measured is not committed."""
    root = Path(__file__).parents[2]
    changed = _git("status", "--porcelain", "--", "service/*.py", "bench/*.py", root=root)
    return (_git("describe", "--always", "--exclude=*", root=root) or "unknown") + ("-dirty" if changed else "")


def _git(*command: str, root: Path) -> str:
    return subprocess.run(("git", *command), capture_output=True, text=True, cwd=root).stdout.strip()


def machine() -> str:
    """Return what the numbers depend on: processor, cores, Python."""
    return f"{_processor()}, {os.cpu_count()} cores, Python {platform.python_version()}"


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
