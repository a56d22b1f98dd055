"""A Hilbert curve visits every cell once, and goes from each to a neighbour."""

import numpy as np
import pytest

from bmq.kernels.match.hilbert import MAX_BITS, bits_of_cells, hilbert_keys

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(("n_dims", "bits"), [(1, 1), (1, 5), (2, 1), (2, 4), (3, 3), (4, 2), (5, 2), (8, 1), (12, 1)])
def test_the_curve_visits_each_cell_once_and_steps_to_neighbours(n_dims: int, bits: int) -> None:
    cells = np.indices((1 << bits,) * n_dims).reshape(n_dims, -1).astype(np.int64)

    keys = hilbert_keys(cells, bits)

    assert sorted(keys.tolist()) == list(range(cells.shape[1]))
    along = cells[:, np.argsort(keys)]
    assert (np.abs(np.diff(along, axis=1)).sum(axis=0) == 1).all()


def test_the_curve_of_the_picture() -> None:
    picture = [[5, 6, 9, 10], [4, 7, 8, 11], [3, 2, 13, 12], [0, 1, 14, 15]]
    x, y = np.meshgrid(np.arange(4), np.arange(3, -1, -1))

    keys = hilbert_keys(np.stack((x.ravel(), y.ravel())).astype(np.int64), 2)

    assert keys.reshape(4, 4).tolist() == picture


@pytest.mark.parametrize("n_dims", [1, 2, 7, 31, 62])
@pytest.mark.parametrize("n_points", [0, 1, 100, 10_000_000])
def test_a_key_has_room_for_all_its_bits(n_dims: int, n_points: int) -> None:
    bits = bits_of_cells(n_dims, n_points)

    assert bits >= 1
    assert n_dims * bits <= MAX_BITS
    assert hilbert_keys(np.full((n_dims, 1), (1 << bits) - 1, dtype=np.int64), bits)[0] >= 0
