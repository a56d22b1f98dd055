"""The stretches of a straight line that lie inside a polygon. Arrays in, numbers out.

previous ──────┃▓▓▓▓▓┃────┃▓▓▓┃──── current         fractions of the way at which it meets an edge;
0.2 ┃ 0.4 ┃0.6 ┃0.7┃                     between two of them all points are inside, or none
"""

import numpy as np
from numba import njit

from bmq.records import Float64s, Int32s, Int64s

# Stretches shorter than this part of the way are none: a touched corner is two meetings that rounding tells apart.
SHORTEST = 1e-12


@njit(cache=True)
def _is_inside(edges: Float64s, start: int, stop: int, x: float, y: float) -> bool:
    n_crossed = 0
    for e in range(start, stop):
        x1, y1, x2, y2 = edges[e, 0], edges[e, 1], edges[e, 2], edges[e, 3]
        if (y1 > y) != (y2 > y):
            if y1 > y2:
                x1, y1, x2, y2 = x2, y2, x1, y1
            n_crossed += (x2 - x1) * (y - y1) - (x - x1) * (y2 - y1) > 0.0
    return n_crossed % 2 == 1


@njit(cache=True)
def _meet(edges: Float64s, start: int, stop: int, x: float, y: float, dx: float, dy: float, meets: Float64s) -> int:
    """Write the fractions at which the line meets an edge, 0 and 1 besides, ascending; return how many."""
    meets[0], meets[1] = 0.0, 1.0
    n = 2
    for e in range(start, stop):
        x1, y1 = edges[e, 0] - x, edges[e, 1] - y
        ex, ey = edges[e, 2] - edges[e, 0], edges[e, 3] - edges[e, 1]
        across = dx * ey - dy * ex
        if across == 0.0:
            continue  # side by side: the edges at its ends are met in its place
        fraction = (x1 * ey - y1 * ex) / across
        on_edge = (x1 * dy - y1 * dx) / across
        if 0.0 < fraction < 1.0 and -SHORTEST <= on_edge <= 1.0 + SHORTEST:
            meets[n] = fraction
            n += 1
    meets[:n].sort()
    return n


@njit(cache=True)
def polygon_stretches(
    edge_starts: Int64s, edges: Float64s, shapes: Int32s, lines: Float64s
) -> tuple[Int64s, Float64s, Float64s]:
    """Return the stretches of lines inside polygons.

    Parameters
    ----------
    edge_starts : int64[n_shapes + 1]
        The edges of shape s are ``edges[edge_starts[s]:edge_starts[s + 1]]``.
    edges : float64[n, 4]
        x and y of both ends, all rings.
    shapes : int32[m]
    lines : float64[m, 4]
        x and y of the begin, and the way to the end.

    Returns
    -------
    int64[k], float64[k], float64[k]
        Which of the m, and the fractions of the way at which the stretch begins and ends; ascending.

    Notes
    -----
    Raises nothing. O(e log e) for a polygon of e edges, and e for each edge met.
    """
    n_most = 0
    for i in range(shapes.size):
        n_most += edge_starts[shapes[i] + 1] - edge_starts[shapes[i]] + 1
    which = np.empty(n_most, dtype=np.int64)
    begins = np.empty(n_most, dtype=np.float64)
    ends = np.empty(n_most, dtype=np.float64)
    widest = 2
    for s in range(edge_starts.size - 1):
        widest = max(widest, edge_starts[s + 1] - edge_starts[s] + 2)
    meets = np.empty(widest, dtype=np.float64)
    n = 0
    for i in range(shapes.size):
        start, stop = edge_starts[shapes[i]], edge_starts[shapes[i] + 1]
        x, y, dx, dy = lines[i, 0], lines[i, 1], lines[i, 2], lines[i, 3]
        n_meets = _meet(edges, start, stop, x, y, dx, dy, meets)
        first = n
        for k in range(n_meets - 1):
            if meets[k + 1] - meets[k] <= SHORTEST:
                continue
            middle = (meets[k] + meets[k + 1]) / 2
            if not _is_inside(edges, start, stop, x + middle * dx, y + middle * dy):
                continue
            if n > first and meets[k] - ends[n - 1] <= SHORTEST:
                ends[n - 1] = meets[k + 1]
                continue
            which[n], begins[n], ends[n] = i, meets[k], meets[k + 1]
            n += 1
    return which[:n], begins[:n], ends[:n]
