"""The made-up city and its traffic are what the papers' experiments ask for."""

import numpy as np
import pytest
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from bench.roads import (
    FAST,
    KMH,
    OLDENBURG,
    SAMPLE_SECONDS,
    SLOW,
    City,
    Kind,
    make_streets,
    positions,
    squares,
    travels,
)

pytestmark = pytest.mark.unit

KINDS = pytest.mark.parametrize("kind", [FAST, SLOW], ids=["fast", "slow"])
VILLAGE = City(extent=1_000.0, n_across=6, n_edges=45, arterial_every=3, n_destinations=10, town=100.0)


@pytest.mark.parametrize("city", [OLDENBURG, VILLAGE], ids=["city", "village"])
def test_every_node_can_be_reached_and_as_many_edges_stay_as_asked_for(city: City) -> None:
    streets = make_streets(city)
    n_nodes = city.n_across**2

    n_parts, _ = connected_components(coo_array((streets.lengths, tuple(streets.edges)), shape=(n_nodes, n_nodes)))

    assert n_parts == 1
    assert streets.nodes.shape == (2, n_nodes)
    assert len(set(map(tuple, streets.edges.T.tolist()))) == streets.lengths.size == city.n_edges
    assert ((streets.nodes > 0) & (streets.nodes < city.extent)).all()
    assert set(streets.classes.tolist()) == {0, 1, 2}


@KINDS
def test_an_object_is_always_on_a_road(kind: Kind) -> None:
    streets = make_streets()
    begins, ends = streets.nodes[:, streets.edges[0]], streets.nodes[:, streets.edges[1]]
    roads = ends - begins

    for at in positions(kind, 5, 40, seed=3).transpose(0, 2, 1).reshape(-1, 2, 1):
        # The nearest point of each road.
        share = ((at - begins) * roads).sum(axis=0) / streets.lengths**2
        distances = np.hypot(*(begins + share.clip(0, 1) * roads - at))
        assert distances.min() < 1e-6


@KINDS
def test_no_object_is_faster_than_its_kind_nor_in_a_straighter_line_than_its_road(kind: Kind) -> None:
    found = travels(kind, 300, 50, seed=4)

    on_the_road = np.diff(found.travelled, axis=0)
    beeline = np.hypot(*np.diff(found.positions, axis=0).transpose(1, 0, 2))
    tolerance = 1e-6

    assert (on_the_road <= kind.fastest * SAMPLE_SECONDS + tolerance).all()
    assert (on_the_road > 0).all()
    assert (beeline <= on_the_road + tolerance).all()


@pytest.mark.parametrize(
    ("kind", "fastest_kmh", "average_kmh"), [(FAST, 60.0, 20.0), (SLOW, 12.0, 4.3)], ids=["fast", "slow"]
)
def test_speeds_are_those_of_the_paper(kind: Kind, fastest_kmh: float, average_kmh: float) -> None:
    found = travels(kind, 1_000, 100, seed=5)

    average = found.travelled[-1].mean() / (99 * SAMPLE_SECONDS)

    assert kind.fastest == pytest.approx(fastest_kmh * KMH)
    assert average == pytest.approx(average_kmh * KMH, rel=0.1)


def test_an_object_that_arrives_goes_on_to_the_next_place() -> None:
    # A trip through the village takes minutes, so a day holds hundreds.
    found = travels(FAST, 20, 2_880, seed=6, city=VILLAGE)

    assert (np.diff(found.travelled, axis=0) > 0).all()
    assert (found.positions.std(axis=0) > VILLAGE.extent / 10).all()


def test_the_seed_decides_everything() -> None:
    again, other = (positions(FAST, 10, 20, seed=seed) for seed in (7, 8))

    assert again.shape == (20, 2, 10)
    np.testing.assert_array_equal(again, positions(FAST, 10, 20, seed=7))
    assert (again != other).any()
    np.testing.assert_array_equal(squares(10, 500.0, seed=7), squares(10, 500.0, seed=7))


def test_squares_have_the_side_asked_for_and_crowd_around_the_centre() -> None:
    lo, hi = squares(4_000, 500.0, seed=9)

    assert lo.shape == hi.shape == (2, 4_000)
    np.testing.assert_allclose(hi - lo, 500.0)
    centres = (lo + hi) / 2
    np.testing.assert_allclose(centres.mean(axis=1), OLDENBURG.extent / 2, atol=200)
    np.testing.assert_allclose(centres.std(axis=1), OLDENBURG.town, rtol=0.05)
