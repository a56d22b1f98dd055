"""The workloads of the peers cross as often as their formulas say, and are the same each time."""

from itertools import pairwise

import numpy as np
import pytest

from bench.tile38_points import FULL, batch_of, n_first_events, workload_of
from bench.workload import CITY_STEP_M, BandBoxWorkload, BandWorkload, CityWorkload, Workload


def _n_crossings_per_reading(workload: Workload) -> float:
    lo, hi = (corner[:, :, None] for corner in workload.squares())
    inside = [
        np.logical_and.reduce((lo <= places) & (places < hi), axis=0)
        for places in (np.stack([xs, ys])[:, None, :] for _, xs, ys in workload.rounds())
    ]
    n_crossings = sum(int((before ^ now).sum()) for before, now in pairwise(inside))
    return n_crossings / workload.n_streams / (workload.n_rounds - 1)


@pytest.mark.parametrize(("n_queries", "city_m"), [(1_000, 60_000.0), (1_000, 15_000.0), (4_000, 15_000.0)])
def test_readings_cross_as_often_as_the_formula_says(n_queries: int, city_m: float) -> None:
    workload = CityWorkload(1_000, 20, n_queries, 750.0, city_m=city_m)

    assert _n_crossings_per_reading(workload) == pytest.approx(workload.crossings_per_reading, rel=0.08)


def test_prices_cross_0_1_borders_a_reading_and_are_in_a_hundredth_of_the_bands() -> None:
    workload = BandBoxWorkload(20, 100, 100_000, 10_000.0)

    assert _n_crossings_per_reading(workload) == pytest.approx(0.1, rel=0.2)
    assert n_first_events(workload) / 20 == pytest.approx(1_000, rel=0.1)


def test_bands_and_their_boxes_have_the_same_readings_and_prices() -> None:
    bands, boxes = BandWorkload(20, 3, 50, 10_000.0), BandBoxWorkload(20, 3, 50, 10_000.0)

    assert all(np.array_equal(a[1], b[1]) for a, b in zip(bands.rounds(), boxes.rounds(), strict=True))
    for (band_id, band), (box_id, box) in zip(bands.definitions(), boxes.definitions(), strict=True):
        assert band_id == box_id
        assert box["region"] == {"box": {"y": [0.0, 1.0], **band["region"]["box"]}}  # type: ignore[index]


def test_the_point_of_few_crossings_has_0_16_a_reading() -> None:
    assert workload_of(FULL, 1_000, 60).crossings_per_reading == pytest.approx(0.16, abs=0.005)


def test_objects_stay_in_the_city_and_step_as_far_as_asked() -> None:
    rounds = [np.stack([xs, ys]) for _, xs, ys in CityWorkload(500, 30, 1, 750.0).rounds()]

    assert all((places >= 0).all() and (places <= 15_000).all() for places in rounds)
    for before, now in pairwise(rounds):
        assert np.hypot(*(now - before)) == pytest.approx(CITY_STEP_M, abs=0.02)


def test_edges_have_half_a_kilometre_to_one() -> None:
    lo, hi = CityWorkload(1, 1, 10_000, 750.0).squares()
    edges = hi - lo

    assert edges[0] == pytest.approx(edges[1], abs=0.001)
    assert edges.min() == pytest.approx(500, abs=1)
    assert edges.max() == pytest.approx(1_000, abs=1)


def test_the_same_workload_has_the_same_readings_and_squares() -> None:
    first, second = (CityWorkload(100, 5, 100, 750.0) for _ in range(2))

    assert np.array_equal(first.squares(), second.squares())
    assert all(np.array_equal(a[1:], b[1:]) for a, b in zip(first.rounds(), second.rounds(), strict=True))


@pytest.mark.parametrize("km", [15, 60])
@pytest.mark.parametrize("n_zones", FULL.zones)
def test_a_point_keeps_its_limits_and_leaves_batches_that_count(n_zones: int, km: int) -> None:
    workload = workload_of(FULL, n_zones, km)
    n_counted = workload.n_streams * (workload.n_rounds - 1)

    assert n_counted <= FULL.max_readings
    assert n_counted * workload.crossings_per_reading <= FULL.max_crossings or workload.n_rounds == 3
    n_batches = (n_counted + workload.n_streams) / batch_of(FULL, workload)
    assert n_batches >= 4.9  # of which two are warm-up
    assert n_batches % 1 > 0.99 or n_batches % 1 == 0  # no small one at the end


def test_first_events_are_the_squares_that_hold_the_first_readings() -> None:
    workload = CityWorkload(250, 1, 300, 750.0)
    _, xs, ys = next(workload.rounds())
    lo, hi = workload.squares()
    expected = sum(
        lo[0, q] <= x < hi[0, q] and lo[1, q] <= y < hi[1, q]
        for q in range(300)
        for x, y in zip(xs.tolist(), ys.tolist(), strict=True)
    )

    assert n_first_events(workload) == expected
