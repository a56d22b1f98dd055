"""What the figures of matching share: how long a search is measured, and its points. No figure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from bench.boxes import WholeBoxes
from bench.figures.figure import Point, Scale, counted
from bench.measure import Stabber, Times, race_stabs, registered
from bmq.index.base import MatchIndex

SEED = 20060509


@dataclass(frozen=True, slots=True)
class Length:
    """How long a race is: ``n_rounds`` timed ones of ``n_values`` searches, after one that is not timed."""

    n_rounds: int
    n_values: int


LENGTHS = {Scale.SMOKE: Length(3, 20), Scale.REDUCED: Length(7, 1_000), Scale.FULL: Length(25, 1_000)}


def raced(indexes: Mapping[str, MatchIndex], boxes: WholeBoxes, n_queries: int, length: Length) -> dict[str, Times]:
    """Return what each index took to search the boxes' values among ``n_queries`` boxes, which are registered here."""
    regions = boxes.regions(n_queries, SEED)
    for index in indexes.values():
        registered(index, regions)
    values = (boxes.values(length.n_values, SEED + 1 + number) for number in range(length.n_rounds + 1))
    stabbers: Mapping[str, Stabber] = indexes
    return race_stabs(stabbers, values, regions)


def compared(
    x: float,
    indexes: Mapping[str, MatchIndex],
    boxes: WholeBoxes,
    n_queries: int,
    scale: Scale,
    panels: tuple[str, str],
) -> Iterator[Point]:
    """Yield ns a search and megabytes of each index at ``x``, on the panels named for them."""
    for name, times in raced(indexes, boxes, n_queries, LENGTHS[scale]).items():
        yield Point(panels[0], name, x, *times.spread)
        yield counted(panels[1], name, x, indexes[name].nbytes / 1e6)
