"""What a move costs in each border structure, by the number of queries, their sides and the steps of streams.

Knows formulas and measured constants; decides nothing. Sides and steps are in ranks: whatever the distribution
of the borders, they are about evenly spread in ranks, so counts of candidates are products.
"""

from dataclasses import dataclass

import numpy as np

from bmq.index.stab_difference import cells_for, two_shortest
from bmq.records import Float64s, IndexKind

# Nanoseconds for each term below. Fitted by `python -m bench.cost_model` to the setups of `bench.choice`, on one
# thread of an AMD EPYC; another machine changes all of them alike, and only their ratios decide.
NS: dict[IndexKind, tuple[float, ...]] = {
    IndexKind.REGION_SEGMENTS: (5.0, 1.0, 0.5, 5.0, 5.0),
    IndexKind.BORDER_GRID: (20.0, 2.0, 8.0, 10.0),
    IndexKind.ND_BMQ: (5.0, 8.0, 4.0, 10.0, 10.0),
    IndexKind.STAB_DIFFERENCE: (40.0, 2.0, 6.0, 8.0, 10.0),
    IndexKind.SCAN: (5.0, 0.25, 5.0, 0.0),
}
# Build a structure from its table, for each row; up to 0.8 in the plane.
REBUILD_NS = 600.0

FAR = 8192  # queries; a larger structure outgrows the second cache, and each doubling adds to every look-up


@dataclass(frozen=True, slots=True)
class Workload:
    """The queries of a layer and the movement over them.

    Attributes
    ----------
    n_queries : at least 1.
    sides : float64[d], mean side of the regions, in ranks.
    steps : float64[d], mean length of a move's projection, in ranks.
    """

    n_queries: int
    sides: Float64s
    steps: Float64s


def move_ns(kind: IndexKind, workload: Workload) -> float:
    """Return the predicted nanoseconds of one move."""
    return float(np.dot(NS[kind], terms(kind, workload)))


def terms(kind: IndexKind, workload: Workload) -> tuple[float, ...]:
    """Return what a move costs in units of ``NS``: candidates of each sort, look-ups and crossings."""
    m, sides, steps = workload.n_queries, workload.sides, workload.steps
    n_dims = sides.size
    far = float(np.log2(1 + m / FAR))
    # What holds one end of a move, and less what also holds the other.
    n_events = 2 * m * np.prod(sides) * (1 - np.exp(-np.sum(steps / np.maximum(sides, 1e-12))))
    deltas = 2 * m * steps
    if kind is IndexKind.SCAN:
        return 1.0, m * n_dims, n_events, far
    if kind is IndexKind.STAB_DIFFERENCE:
        cells = cells_for(m, sides)
        a, b = two_shortest(sides)
        listed = 2 * m * (sides[a] + 1 / cells.n_a)
        held = 2 * m * sides[a]
        if b != a:
            listed, held = listed * min(1, sides[b] + 1 / cells.n_b), held * sides[b]
        return 1.0, listed, held * n_dims, n_events, far
    if kind is IndexKind.BORDER_GRID:
        partners = [min(np.delete(sides, k)) for k in range(n_dims)]
        return n_dims, 4 * m * float(np.dot(partners, steps)), n_events, far * n_dims
    log_deltas = float(np.log2(1 + deltas).sum())
    if kind is IndexKind.ND_BMQ:
        return n_dims, log_deltas, float(deltas.sum()), n_events, far * n_dims
    return 1.0, log_deltas, float(deltas.sum()), n_events, far
