"""What the workloads of boxes promise of regions and values."""

import numpy as np
import pytest

from bench.boxes import Cubes, WholeBoxes

pytestmark = pytest.mark.unit

SPACE = (300, 200)


def test_streams_stay_in_the_space_and_move_by_the_fluctuation_level_in_each_dimension() -> None:
    cubes = Cubes(3, extent=1_000.0, fluctuation=0.01)
    positions = cubes.positions(n_streams=500, n_samples=200, seed=1)

    assert positions.shape == (200, 3, 500)
    assert positions.min() >= 0
    assert positions.max() <= 1_000.0
    steps = np.abs(np.diff(positions, axis=0)).mean(axis=(0, 2))
    np.testing.assert_allclose(steps, 10.0, rtol=0.03)


def test_cubes_are_as_wide_in_each_dimension() -> None:
    lo, hi = Cubes(4, n_queries=50, width=0.1, extent=10.0).regions(seed=1)

    assert lo.shape == (4, 50)
    np.testing.assert_allclose(hi - lo, 1.0)


@pytest.mark.parametrize("hot", [False, True])
def test_boxes_have_whole_borders_within_the_space_and_sides_up_to_the_widest(hot: bool) -> None:
    lo, hi = WholeBoxes(SPACE, widest=20, hot=hot).regions(20_000, seed=1)

    assert (lo == np.floor(lo)).all()
    assert lo.min() >= 0
    assert (hi.max(axis=1) <= SPACE).all()
    sides, counts = np.unique(hi - lo, return_counts=True)
    assert sides.tolist() == list(range(1, 21))
    assert counts.min() > 0.9 * counts.mean()


def test_uniform_boxes_reach_both_ends_of_the_space() -> None:
    lo, hi = WholeBoxes((50,), widest=10).regions(10_000, seed=1)

    assert (lo.min(), hi.max()) == (0, 50)


@pytest.mark.parametrize(("hot", "share"), [(False, 0.1), (True, 0.91)])
def test_nine_in_ten_crowded_places_lie_in_a_tenth_of_the_space(hot: bool, share: float) -> None:
    boxes = WholeBoxes(SPACE, widest=1, hot=hot)
    for places in (boxes.regions(50_000, seed=1)[0], boxes.values(50_000, seed=2)):
        from_the_middle = np.abs(places / np.array(SPACE)[:, None] - 0.5)
        in_the_tenth = (from_the_middle < np.sqrt(0.1) / 2).all(axis=0)

        assert in_the_tenth.mean() == pytest.approx(share, abs=0.02)


def test_the_same_seed_gives_the_same_workload() -> None:
    boxes, cubes = WholeBoxes(SPACE, widest=20, hot=True), Cubes(2)

    np.testing.assert_array_equal(boxes.regions(100, 5), boxes.regions(100, 5))
    np.testing.assert_array_equal(boxes.values(100, 5), boxes.values(100, 5))
    np.testing.assert_array_equal(cubes.positions(10, 5, 5), cubes.positions(10, 5, 5))
    assert (boxes.values(100, 5) != boxes.values(100, 6)).any()
