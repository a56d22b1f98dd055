"""The definition of a border index: ask every query about every value. Shares no code with `bmq`."""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Crossing = tuple[int, int, int]  # which move, query slot, sign


class IndexOracle:
    """Queries by slot, each a list of [lo, hi), one a dimension."""

    def __init__(self) -> None:
        self.regions: dict[int, list[tuple[float, float]]] = {}

    def register(self, slots: Iterable[int], lo: Floats, hi: Floats) -> None:
        for column, slot in enumerate(slots):
            assert slot not in self.regions
            self.regions[slot] = list(zip(lo[:, column].tolist(), hi[:, column].tolist(), strict=True))

    def deregister(self, slots: Iterable[int]) -> None:
        for slot in slots:
            del self.regions[slot]

    def moves(self, previous: Floats, current: Floats) -> list[Crossing]:
        crossings = []
        for slot, region in self.regions.items():
            was, now = _inside(region, previous), _inside(region, current)
            crossings += [(int(row), slot, 1) for row in np.flatnonzero(now & ~was)]
            crossings += [(int(row), slot, -1) for row in np.flatnonzero(was & ~now)]
        return sorted(crossings)

    def stab(self, values: Floats) -> list[Crossing]:
        return sorted(
            (int(row), slot, 1)
            for slot, region in self.regions.items()
            for row in np.flatnonzero(_inside(region, values))
        )


def _inside(region: list[tuple[float, float]], values: Floats) -> npt.NDArray[np.bool_]:
    inside = np.ones(values.shape[1], dtype=np.bool_)
    for (lo, hi), coordinates in zip(region, values, strict=True):
        inside &= (lo <= coordinates) & (coordinates < hi)
    return inside
