"""Predicts the time of a move in each border structure, from the number of queries, their sides and streams' steps.

Knows formulas and measured constants; it must not decide anything. Sides and steps are in ranks: in ranks, borders are
about evenly spread whatever their distribution, so counts of candidates are products.
"""

from dataclasses import dataclass

import numpy as np

from bmq.index.border.stab_difference import cells_for, two_shortest
from bmq.records import Float64s, IndexKind

# Nanoseconds for each term below. Fitted by `python -m bench.cost_model` to the setups of `bench.choice`, on one thread
# of an AMD EPYC. Another machine changes all of them alike, and only their ratios decide.
NS: dict[IndexKind, tuple[float, ...]] = {
    IndexKind.REGION_SEGMENTS: (27.9, 14.0, 0.0743, 3.14, 9.45),
    IndexKind.BORDER_GRID: (22.6, 3.77, 8.72, 9.38, 11.3, 50.2),
    IndexKind.ND_BMQ: (15.9, 19.6, 15.6, 3.67, 268.0),
    IndexKind.STAB_DIFFERENCE: (34.8, 4.4, 0.361, 5.43, 3.9, 89.2),
    IndexKind.SCAN: (6.07, 0.201, 6.98),
}
# Nanoseconds for each candidate of a structure: the least of its terms. Candidates that were looked at cannot have cost
# less.
NS_A_VISIT: dict[IndexKind, float] = {
    IndexKind.REGION_SEGMENTS: 1.0,
    IndexKind.BORDER_GRID: 3.8,
    IndexKind.ND_BMQ: 3.7,
    IndexKind.STAB_DIFFERENCE: 4.4,
    IndexKind.SCAN: 0.2,
}
# Nanoseconds to build a structure from its table, for each row; up to 800 in the plane.
REBUILD_NS = 600.0

FAR = 32_768  # queries; a larger structure outgrows the second cache, and each doubling adds to every look-up


@dataclass(frozen=True, slots=True)
class Workload:
    """The queries of a layer and the movement of streams over them.

    Attributes
    ----------
    n_queries : at least 1.
    sides : float64[d], mean side of the regions, in ranks.
    steps : float64[d], mean length of a move's projection on each axis, in ranks.
    crowding : how many regions are near the moves, as a multiple of evenly spread ones. Ranks spread each axis by
        itself, so queries in towns are still together in two dimensions.
    """

    n_queries: int
    sides: Float64s
    steps: Float64s
    crowding: float = 1.0


def move_ns(kind: IndexKind, workload: Workload) -> float:
    """Return the predicted nanoseconds of one move."""
    return float(np.dot(NS[kind], terms(kind, workload)))


def terms(kind: IndexKind, workload: Workload) -> tuple[float, ...]:
    """Return the cost of a move in units of ``NS``: candidates of each sort, look-ups and crossings."""
    m, sides, steps = workload.n_queries, workload.sides, workload.steps
    n_dims = sides.size
    far = float(np.log2(1 + m / FAR))
    # The expected number of queries that hold exactly one end of a move.
    lost = 1 - float(np.exp(-np.sum(steps / np.maximum(sides, 1e-12))))
    n_events = 2 * m * workload.crowding * float(np.prod(sides)) * lost
    if kind is IndexKind.SCAN:
        return 1.0, m * n_dims, n_events
    if kind is IndexKind.STAB_DIFFERENCE:
        listed, held = (workload.crowding * count for count in _listed_and_held(m, sides))
        return 1.0, listed, listed * far, held, n_events * far, far
    if kind is IndexKind.BORDER_GRID:
        # Each leg looks at the borders that it crosses in a band, twice as wide as the mean side on the shortest other
        # axis.
        bands = sum(float(np.delete(sides, k).min() * steps[k]) for k in range(n_dims))
        looked_at = 4 * m * workload.crowding * bands
        return n_dims, looked_at, looked_at * (n_dims - 2), n_events, n_events * far, n_dims * far
    deltas = 2 * m * steps
    n_deltas, log_deltas = float(deltas.sum()), float(np.log2(1 + deltas).sum())
    if kind is IndexKind.ND_BMQ:
        return n_dims, log_deltas, n_deltas, n_events, n_dims * far
    return 1.0, log_deltas, n_deltas, n_events * far, far


def _listed_and_held(n_queries: int, sides: Float64s) -> tuple[float, float]:
    """Return how many regions the cells of both ends of a move list, and how many of them hold the end on both axes."""
    cells = cells_for(n_queries, sides)
    a, b = two_shortest(sides)
    listed, held = 2 * n_queries * (sides[a] + 1 / cells.n_a), 2 * n_queries * sides[a]
    if b != a:
        listed, held = listed * min(1.0, sides[b] + 1 / cells.n_b), held * sides[b]
    return float(listed), float(held)
