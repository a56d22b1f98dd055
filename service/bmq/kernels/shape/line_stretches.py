"""Finds the stretches of straight lines inside polygons and inside circles on the globe. Arrays in, numbers out.

previous ──────┃▓▓▓▓▓┃────┃▓▓▓┃──── current         fractions of the way at which it meets a border;
         0.2 ┃   0.4 ┃ 0.6 ┃ 0.7 ┃                  between two of them all points are inside, or none

A circle on the globe is not a circle in degrees, and no formula gives the points at which a line meets its border. So
the distance of the line from the circle is computed in steps of one degree, and where the line comes nearest. Where its
sign changes between two of these points, bisection finds the border. This finds every visit of a circle to which the
line has one nearest point. A line can have two, as it can around half the globe; then a visit shorter than a step may
be missed.

Knows lines, edges and circles. It must not know streams, queries or times.
"""

import numpy as np
from numba import njit

from bmq.kernels.shape.shape_tests import haversine_metres
from bmq.records import Float64s, Int32s, Int64s

# A stretch shorter than this share of the way is dropped. So is a stretch that is not longer than the rounding error of
# its ends: a line that touches a corner meets two edges there, and rounding makes two different fractions of it.
SHORTEST = 1e-12
# How far off a coordinate may be, as a share of it: some roundings. At 5 000 000 m that is 0.01 µm.
DOUBT = 2e-15
# An edge counts as met also if the line passes beyond its ends by up to this share of it. Else a line through a corner
# might meet neither of its edges. This adds a point to look at, and never a visit.
_BEYOND_ENDS = 1e-3
STEP_DEGREES = 1.0
_BISECTIONS = 53  # down to the last bit of a fraction
_SECTIONS = 60  # each leaves 2/3, of two steps at first; 60 exceed the precision of a distance near its minimum


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
        x and y of both ends; the edges of all rings.
    shapes : int32[m]
        The polygon of each line.
    lines : float64[m, 4]
        x and y of the begin of each line, and x and y of its end less those of its begin.

    Returns
    -------
    int64[k], float64[k], float64[k]
        The number of the line, and the fractions of its way at which the stretch begins and ends; ascending.

    Notes
    -----
    Raises nothing. O(e) for a polygon of e edges, and O(e) more for each edge that the line meets.
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
    doubts = np.empty((n_most, 2), dtype=np.float64)  # the doubt of each begin and end
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
    """Write the fractions at which the line meets edges, and 0 and 1, ascending, with their doubts; return how many."""
    x, y, dx, dy = line[0], line[1], line[2], line[3]
    meets[0], meets[1] = (0.0, 0.0), (1.0, 0.0)
    n = 2
    for e in range(start, stop):
        x1, y1 = edges[e, 0] - x, edges[e, 1] - y
        ex, ey = edges[e, 2] - edges[e, 0], edges[e, 3] - edges[e, 1]
        across = dx * ey - dy * ex
        if across == 0.0:
            continue  # parallel: the line meets the edges beside this one instead
        fraction = (x1 * ey - y1 * ex) / across
        on_edge = (x1 * dy - y1 * dx) / across
        if 0.0 < fraction < 1.0 and -_BEYOND_ENDS <= on_edge <= 1.0 + _BEYOND_ENDS:
            x_doubt = DOUBT * max(abs(x), abs(x + dx), abs(edges[e, 0]), abs(edges[e, 2]))
            y_doubt = DOUBT * max(abs(y), abs(y + dy), abs(edges[e, 1]), abs(edges[e, 3]))
            doubt = (x_doubt * abs(ey) + y_doubt * abs(ex)) / abs(across)
            k = n
            while meets[k - 1, 0] > fraction:  # this ends, because the first fraction is 0
                meets[k] = meets[k - 1]
                k -= 1
            meets[k] = fraction, doubt
            n += 1
    return n


@njit(cache=True)
def _holds(edges: Float64s, start: int, stop: int, line: Float64s, fraction: float) -> bool:
    """Return whether the polygon holds the point at ``fraction``, by the rule of `kernels.shape.shape_tests`."""
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
        Longitude and latitude of the centre in degrees, the radius in metres, and a number that is ignored.
    lines : float64[m, 4]
        Longitude and latitude of the begin of each line, and those of its end less those of its begin, in degrees.

    Returns
    -------
    int64[k], float64[k], float64[k]
        The same as from `polygon_stretches`.

    Notes
    -----
    Raises nothing. A line costs O(degrees of its way) and some hundred distances.
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
    """Return the fractions at which to compute the distance, ascending: in steps, and where the line comes nearest."""
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
    """Return how far outside the circle the point at ``fraction`` is, in metres; negative inside."""
    lon, lat = line[0] + fraction * line[2], line[1] + fraction * line[3]
    return float(haversine_metres(circle[0], circle[1], lon, lat) - circle[2])


@njit(cache=True)
def _bisect(circle: Float64s, line: Float64s, inside: float, outside: float) -> float:
    """Return the fraction of the border, given one inside the circle and one outside; the result is inside."""
    for _ in range(_BISECTIONS):
        middle = (inside + outside) / 2
        if _beyond(circle, line, middle) <= 0.0:
            inside = middle
        else:
            outside = middle
    return inside
