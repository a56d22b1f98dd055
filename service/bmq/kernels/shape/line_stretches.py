"""The stretches of straight lines that lie inside polygons and circles on the globe. Arrays in, numbers out.

previous ──────┃▓▓▓▓▓┃────┃▓▓▓┃──── current         fractions of the way at which it meets a border;
         0.2 ┃   0.4 ┃ 0.6 ┃ 0.7 ┃                  between two of them all points are inside, or none

A circle on the globe is no circle in degrees, and its border has no formula to solve: how far the line is from it is
looked at in steps of a degree and where it comes nearest, and where the sign changes between two looks is found by
bisection. That is near enough for any circle with one nearest point on the way; of those that the line comes near to
twice, as it can around half the globe, a visit shorter than a step may be missed.
"""

import numpy as np
from numba import njit

from bmq.kernels.shape.shape_tests import haversine_metres
from bmq.records import Float64s, Int32s, Int64s

# Stretches shorter than this part of the way are none, and those that are not longer than what their ends are in doubt
# by: a touched corner is two meetings that rounding tells apart.
SHORTEST = 1e-12
# How far off a coordinate may be, as a part of it: some roundings. At 5 000 000 m that is 0.01 µm.
DOUBT = 2e-15
# An edge is met also this part of it beyond its ends, lest a corner that the line runs through be met by none of its
# edges. That is a point more to look at, no visit more.
_BEYOND_ENDS = 1e-3
STEP_DEGREES = 1.0
_BISECTIONS = 53  # to the last bit of a fraction
_SECTIONS = 60  # each leaves two thirds of two steps: closer than the distance, flat at its smallest, can tell apart


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
    Raises nothing. O(e) for a polygon of e edges, and e for each edge met.
    """
    n_most = 0
    widest = 0
    for i in range(shapes.size):
        n_edges = edge_starts[shapes[i] + 1] - edge_starts[shapes[i]]
        n_most += n_edges + 1
        widest = max(widest, n_edges)
    which = np.empty(n_most, dtype=np.int64)
    begins = np.empty(n_most, dtype=np.float64)
    ends = np.empty(n_most, dtype=np.float64)
    doubts = np.empty((n_most, 2), dtype=np.float64)  # of begin and end
    meets = np.empty((widest + 2, 2), dtype=np.float64)
    n = 0
    for i in range(shapes.size):
        start, stop = edge_starts[shapes[i]], edge_starts[shapes[i] + 1]
        n_meets = _meet(edges, start, stop, lines[i], meets)
        first = n
        for k in range(n_meets - 1):
            begin, end = meets[k, 0], meets[k + 1, 0]
            if end - begin <= SHORTEST or not _holds(edges, start, stop, lines[i], (begin + end) / 2):
                continue
            if n > first and begin - ends[n - 1] <= SHORTEST + doubts[n - 1, 1] + meets[k, 1]:
                ends[n - 1], doubts[n - 1, 1] = end, meets[k + 1, 1]
                continue
            which[n], begins[n], ends[n] = i, begin, end
            doubts[n, 0], doubts[n, 1] = meets[k, 1], meets[k + 1, 1]
            n += 1
    real = ends[:n] - begins[:n] > SHORTEST + doubts[:n, 0] + doubts[:n, 1]
    return which[:n][real], begins[:n][real], ends[:n][real]


@njit(cache=True)
def _meet(edges: Float64s, start: int, stop: int, line: Float64s, meets: Float64s) -> int:
    """Write where the line meets an edge, 0 and 1 besides: the fraction, ascending, and its doubt; return how many."""
    x, y, dx, dy = line[0], line[1], line[2], line[3]
    meets[0], meets[1] = (0.0, 0.0), (1.0, 0.0)
    n = 2
    for e in range(start, stop):
        x1, y1 = edges[e, 0] - x, edges[e, 1] - y
        ex, ey = edges[e, 2] - edges[e, 0], edges[e, 3] - edges[e, 1]
        across = dx * ey - dy * ex
        if across == 0.0:
            continue  # side by side: the edges at its ends are met in its place
        fraction = (x1 * ey - y1 * ex) / across
        on_edge = (x1 * dy - y1 * dx) / across
        if 0.0 < fraction < 1.0 and -_BEYOND_ENDS <= on_edge <= 1.0 + _BEYOND_ENDS:
            x_doubt = DOUBT * max(abs(x), abs(x + dx), abs(edges[e, 0]), abs(edges[e, 2]))
            y_doubt = DOUBT * max(abs(y), abs(y + dy), abs(edges[e, 1]), abs(edges[e, 3]))
            doubt = (x_doubt * abs(ey) + y_doubt * abs(ex)) / abs(across)
            k = n
            while meets[k - 1, 0] > fraction:  # the first one is 0
                meets[k] = meets[k - 1]
                k -= 1
            meets[k] = fraction, doubt
            n += 1
    return n


@njit(cache=True)
def _holds(edges: Float64s, start: int, stop: int, line: Float64s, fraction: float) -> bool:
    """Return whether the polygon holds the point of the line, by the rule of `kernels.shape.shape_tests`."""
    x, y, dx, dy = line[0], line[1], line[2], line[3]
    at_x, at_y = x + fraction * dx, y + fraction * dy
    n_crossed = 0
    for e in range(start, stop):
        x1, y1, x2, y2 = edges[e, 0], edges[e, 1], edges[e, 2], edges[e, 3]
        if (y1 > at_y) == (y2 > at_y):
            continue
        if dx * (y2 - y1) == dy * (x2 - x1) and (x1 - x) * dy == (y1 - y) * dx:
            continue  # the line lies on the edge, so the point is not left of it, however it was rounded
        if y1 > y2:
            x1, y1, x2, y2 = x2, y2, x1, y1
        n_crossed += (x2 - x1) * (at_y - y1) - (at_x - x1) * (y2 - y1) > 0.0
    return n_crossed % 2 == 1


@njit(cache=True)
def globe_stretches(circles: Float64s, lines: Float64s) -> tuple[Int64s, Float64s, Float64s]:
    """Return the stretches of lines inside circles on the globe.

    Parameters
    ----------
    circles : float64[m, 4]
        Longitude and latitude of the centre in degrees, the radius in metres, and what is not looked at.
    lines : float64[m, 4]
        Longitude and latitude of the begin, and the way to the end, in degrees.

    Returns
    -------
    int64[k], float64[k], float64[k]
        As of `polygon_stretches`.

    Notes
    -----
    Raises nothing. O(degrees of the way) for a line, and some hundred distances.
    """
    which, begins, ends = np.empty(16, dtype=np.int64), np.empty(16), np.empty(16)
    n = 0
    for i in range(len(lines)):
        circle, line = circles[i], lines[i]
        looks = _looks(circle, line)
        begin = -1.0
        was = _beyond(circle, line, looks[0])
        for k in range(1, looks.size):
            now = _beyond(circle, line, looks[k])
            if was > 0.0 >= now:
                begin = _bisect(circle, line, looks[k], looks[k - 1])
            elif was <= 0.0 < now and begin >= 0.0:
                end = _bisect(circle, line, looks[k - 1], looks[k])
                if end - begin > SHORTEST:
                    if n == which.size:
                        which = np.concatenate((which, which))
                        begins, ends = np.concatenate((begins, begins)), np.concatenate((ends, ends))
                    which[n], begins[n], ends[n] = i, begin, end
                    n += 1
            was = now
    return which[:n], begins[:n], ends[:n]


@njit(cache=True)
def _looks(circle: Float64s, line: Float64s) -> Float64s:
    """Return the fractions at which the line is looked at, ascending: in steps, and where it comes nearest."""
    n_steps = 2 + int(max(abs(line[2]), abs(line[3])) / STEP_DEGREES)
    looks = np.empty(n_steps + 2, dtype=np.float64)
    best, least = 0, np.inf
    for k in range(n_steps + 1):
        looks[k] = k / n_steps
        there = _beyond(circle, line, looks[k])
        if there < least:
            best, least = k, there
    low, high = looks[max(0, best - 1)], looks[min(n_steps, best + 1)]
    for _ in range(_SECTIONS):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        if _beyond(circle, line, left) < _beyond(circle, line, right):
            high = right
        else:
            low = left
    looks[n_steps + 1] = (low + high) / 2
    looks.sort()
    return looks


@njit(cache=True)
def _beyond(circle: Float64s, line: Float64s, fraction: float) -> float:
    """Return how far outside the circle the point of the line is, in metres."""
    lon, lat = line[0] + fraction * line[2], line[1] + fraction * line[3]
    return float(haversine_metres(circle[0], circle[1], lon, lat) - circle[2])


@njit(cache=True)
def _bisect(circle: Float64s, line: Float64s, inside: float, outside: float) -> float:
    for _ in range(_BISECTIONS):
        middle = (inside + outside) / 2
        if _beyond(circle, line, middle) <= 0.0:
            inside = middle
        else:
            outside = middle
    return inside
