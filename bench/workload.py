"""Vehicles in a plane and squares to watch or to select, from a seed: what every benchmark of the pipeline reads.

A vehicle keeps its direction and turns back at the border of the plane, so every reading is one step of fixed
length. For N squares of side a in a plane of area A, a step s crosses (2 / pi) * s * 4 * a * N / A borders on
average (Buffon), less what it jumps over: that is how a side is chosen for an event rate. A select query tells every
reading inside, and so N of them with two squares each tell 2 * N * a^2 / A of a reading.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

PLANE_M = 60_000.0
STEP_M = 30.0
BASE_MS = 1_700_000_000_000
ROUND_MS = 1_000


@dataclass(frozen=True, slots=True)
class Workload:
    """``n_rounds`` readings of each of ``n_streams`` vehicles over ``n_queries`` squares of ``side_m``."""

    n_streams: int
    n_rounds: int
    n_queries: int
    side_m: float
    seed: int = 20060509

    def rounds(self) -> Iterator[tuple[int, Floats, Floats]]:
        """Yield (event time ms, x float64[n_streams], y float64[n_streams]), rounded to centimetres."""
        rng = np.random.default_rng(self.seed)
        x, y = rng.uniform(0, PLANE_M, (2, self.n_streams))
        heading = rng.uniform(0, 2 * np.pi, self.n_streams)
        dx, dy = STEP_M * np.cos(heading), STEP_M * np.sin(heading)
        for number in range(self.n_rounds):
            yield BASE_MS + number * ROUND_MS, np.round(x, 2), np.round(y, 2)
            dx = np.where((x + dx < 0) | (x + dx >= PLANE_M), -dx, dx)
            dy = np.where((y + dy < 0) | (y + dy >= PLANE_M), -dy, dy)
            x, y = x + dx, y + dy

    def squares(self) -> tuple[Floats, Floats]:
        """Return lower and upper corners of the squares, float64[2, n_queries] each."""
        rng = np.random.default_rng(self.seed + 1)
        lo = np.round(rng.uniform(0, PLANE_M - self.side_m, (2, self.n_queries)), 2)
        return lo, lo + self.side_m

    def definitions(self) -> Iterator[tuple[str, dict[str, object]]]:
        """Yield (query id, definition)."""
        lo, hi = self.squares()
        for i in range(self.n_queries):
            box = {"x": [lo[0, i], hi[0, i]], "y": [lo[1, i], hi[1, i]]}
            yield f"q{i}", {"kind": "border", "feed": "vehicles", "region": {"box": box}}


@dataclass(frozen=True, slots=True)
class SelectWorkload(Workload):
    """The same vehicles; each of the queries selects what is in either of two squares of ``side_m``."""

    def alternatives(self) -> tuple[Floats, Floats]:
        """Return lower and upper corners of both squares of each query, float64[2, n_queries, 2] each."""
        rng = np.random.default_rng(self.seed + 2)
        lo = np.round(rng.uniform(0, PLANE_M - self.side_m, (2, self.n_queries, 2)), 2)
        return lo, lo + self.side_m

    def definitions(self) -> Iterator[tuple[str, dict[str, object]]]:
        """Yield (query id, definition)."""
        lo, hi = self.alternatives()
        for i in range(self.n_queries):
            squares = [{"x": [lo[0, i, k], hi[0, i, k]], "y": [lo[1, i, k], hi[1, i, k]]} for k in range(2)]
            yield f"q{i}", {"kind": "select", "feed": "vehicles", "any": squares}


def stream_id(number: int) -> str:
    """Return the id of a vehicle."""
    return f"v{number}"
