"""Workloads of boxes: cubes that drifting points meet, and rectangles whose borders are whole numbers.

Knows what the papers say of their queries and values, with what they leave open filled in here. Vehicles are `roads`.
"""

from dataclasses import dataclass

import numpy as np

from bmq.records import Float64s

# VCI/VCR report, section 3.6: 90 % of the queries lie in 10 % of the region.
HOT_QUERIES = 0.9
HOT_AREA = 0.1


@dataclass(frozen=True, slots=True)
class Cubes:
    """Uniform cubes, and points that drift by a fluctuation level in each dimension.

    Attributes
    ----------
    n_dims : number of dimensions.
    n_queries : how many cubes.
    width : side of a cube, as a share of ``extent``.
    fluctuation : mean distance of two readings of a stream in one dimension, as a share of ``extent``.
    extent : size of the space in each dimension; a cube may reach beyond.

    Notes
    -----
    Source: Lee et al., BMQ-Processor, section 7.3.1. How steps are distributed is not said: exponentially here, up or
    down alike, and reflected where they would leave the space.
    """

    n_dims: int
    n_queries: int = 10_000
    width: float = 0.001
    fluctuation: float = 0.001
    extent: float = 1e5

    def regions(self, seed: int) -> tuple[Float64s, Float64s]:
        """Return lower and upper borders, float64[d, n_queries]."""
        lo = np.random.default_rng(seed).uniform(0, self.extent, (self.n_dims, self.n_queries))
        return lo, lo + self.width * self.extent

    def positions(self, n_streams: int, n_samples: int, seed: int) -> Float64s:
        """Return where the streams are at each sample, float64[n_samples, d, n_streams], within the space."""
        rng = np.random.default_rng(seed)
        shape = (n_samples, self.n_dims, n_streams)
        steps = rng.exponential(self.fluctuation * self.extent, shape) * rng.choice((-1, 1), shape)
        steps[0] = rng.uniform(0, self.extent, shape[1:])
        # The fold of a free walk at both ends of the space is the walk that is reflected there.
        folded = np.mod(np.cumsum(steps, axis=0), 2 * self.extent)
        reflected: Float64s = np.minimum(folded, 2 * self.extent - folded)
        return reflected


@dataclass(frozen=True, slots=True)
class WholeBoxes:
    """Intervals or rectangles whose borders are whole numbers, and values between them that are not.

    Attributes
    ----------
    extents : size of the space in each dimension.
    widest : each side is uniform among 1..widest.
    hot : whether 90 % of the lower corners, and of the values, lie in the same 10 % of the space, else all uniform.

    Notes
    -----
    Source: Wu, Chen and Yu, Indexing Continual Range Queries for Efficient Stream Processing, sections 2.1, 3.1, 3.5
    and 3.6. The report does not say how values are distributed. In its Fig. 13 (a) the VCR search takes five times as
    long on the 90 %-10 % queries. Under uniform values the answers would be as large as on uniform queries, so the
    values must follow the queries. Nor does it say which 10 %: here the middle of the space, shaped like it. Corners
    are drawn so that the widest box would fit.
    """

    extents: tuple[int, ...]
    widest: int
    hot: bool = False

    def regions(self, n_queries: int, seed: int) -> tuple[Float64s, Float64s]:
        """Return lower and upper borders, float64[d, n_queries], whole numbers within the space."""
        rng = np.random.default_rng(seed)
        shape = (len(self.extents), n_queries)
        lo = np.floor(self._places(rng, n_queries, self._room))
        return lo, lo + rng.integers(1, self.widest, shape, endpoint=True)

    def values(self, n: int, seed: int) -> Float64s:
        """Return float64[d, n] values, anywhere between the borders."""
        return self._places(np.random.default_rng(seed), n, np.array(self.extents, dtype=np.float64))

    @property
    def _room(self) -> Float64s:
        """How far lower corners reach, exclusive."""
        return np.array(self.extents, dtype=np.float64) - self.widest + 1

    def _places(self, rng: np.random.Generator, n: int, extents: Float64s) -> Float64s:
        """Return float64[d, n] places below ``extents``."""
        places = rng.random((extents.size, n))
        if self.hot:
            side = HOT_AREA ** (1 / extents.size)
            chosen = rng.random(n) < HOT_QUERIES
            places = np.where(chosen, (1 - side) / 2 + side * places, places)
        return places * extents[:, None]
