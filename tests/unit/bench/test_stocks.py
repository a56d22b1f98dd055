"""The stock workload is what the papers say of it."""

import numpy as np
import pytest

from bench.stocks import DOMAIN, Market, fluctuation_percent


@pytest.mark.parametrize("asked", [0.001, 0.01, 0.1, 1.0])
def test_prices_fluctuate_as_asked(asked: float) -> None:
    paths = np.concatenate(list(Market(fluctuation_percent=asked, n_streams=500).prices(100)))

    assert fluctuation_percent(paths) == pytest.approx(asked, rel=0.05)


@pytest.mark.parametrize("skewed", [False, True])
def test_prices_are_whole_and_within_the_domain(skewed: bool) -> None:
    paths = np.concatenate(list(Market(fluctuation_percent=5.0, prices_skewed=skewed).prices(50)))

    assert (paths == np.round(paths)).all()
    assert (paths >= 0).all()
    assert (paths <= DOMAIN).all()


@pytest.mark.parametrize("skewed", [False, True])
def test_borders_are_whole_and_as_far_apart_as_asked(skewed: bool) -> None:
    lo, hi = Market(n_queries=10_000, width_percent=0.05, queries_skewed=skewed).regions()

    assert lo.shape == hi.shape == (1, 10_000)
    assert (lo == np.round(lo)).all()
    assert (lo >= 1).all()
    assert (lo < DOMAIN).all()
    assert (hi - lo == 500).all()


def test_skewed_places_lie_around_the_middle() -> None:
    lo, _ = Market(queries_skewed=True).regions()

    assert lo.mean() == pytest.approx(DOMAIN / 2, rel=0.01)
    assert lo.std() == pytest.approx(DOMAIN / 10, rel=0.02)


def test_the_same_market_has_the_same_prices() -> None:
    first, second = (np.concatenate(list(Market().prices(3))) for _ in range(2))

    assert (first == second).all()
