"""The rules of every border index, one example each."""

from collections.abc import Callable

import numpy as np
import pytest

from bench.baselines.one_structure import BorderGrid, NdBmq, RegionSegmentList
from bmq.index.layered import SMALLEST_LAYER, Layered

pytestmark = pytest.mark.unit

INF = np.inf


@pytest.fixture(params=[RegionSegmentList, BorderGrid, lambda: NdBmq(3)], ids=["1-D", "2-D", "3-D"])
def index(request: pytest.FixtureRequest) -> Layered:
    made: Layered = request.param()
    return made


def register(index: Layered, slot: int, lo: float, hi: float) -> None:
    """Add the query [lo, hi) in every dimension."""
    ends = np.ones((index.n_dims, 1))
    index.register(np.array([slot], dtype=np.int32), lo * ends, hi * ends)


def deregister(index: Layered, *slots: int) -> None:
    index.deregister(np.array(slots, dtype=np.int32))


def move(index: Layered, *points: float, stream: int = 0) -> list[tuple[int, int, int]]:
    """Return (move, sign, slot) of one stream that goes along the diagonal from point to point."""
    path = np.array(points, dtype=np.float64) * np.ones((index.n_dims, 1))
    streams = np.full(len(points) - 1, stream, dtype=np.int32)
    moves = index.moves(streams, path[:, :-1], path[:, 1:])
    return sorted(zip(moves.rows.tolist(), moves.signs.tolist(), moves.queries.tolist(), strict=True))


def holding(index: Layered, point: float) -> list[int]:
    queries: list[int] = index.stab(point * np.ones((index.n_dims, 1))).queries.tolist()
    return sorted(queries)


def test_a_reading_on_the_lower_border_is_inside(index: Layered) -> None:
    register(index, 7, 10, 20)
    assert move(index, 9, 10) == [(0, 1, 7)]
    assert move(index, 10, 9) == [(0, -1, 7)]
    assert holding(index, 10) == [7]


def test_a_reading_on_the_upper_border_is_outside(index: Layered) -> None:
    register(index, 7, 10, 20)
    assert move(index, 19, 20) == [(0, -1, 7)]
    assert move(index, 20, 19) == [(0, 1, 7)]
    assert holding(index, 20) == []


def test_a_region_jumped_over_is_not_reported(index: Layered) -> None:
    register(index, 7, 10, 20)
    assert move(index, 9, 20) == []
    assert move(index, 20, 9) == []


def test_a_move_inside_a_region_is_not_reported(index: Layered) -> None:
    register(index, 7, 10, 20)
    register(index, 8, 14, 16)
    assert move(index, 11, 19, 12) == []


def test_regions_that_meet_are_left_and_entered_in_one_move(index: Layered) -> None:
    register(index, 7, 10, 20)
    register(index, 8, 20, 30)
    assert move(index, 15, 20) == [(0, -1, 7), (0, 1, 8)]
    assert move(index, 20, 15) == [(0, -1, 8), (0, 1, 7)]


def test_moves_of_one_stream_follow_each_other(index: Layered) -> None:
    register(index, 7, 10, 20)
    assert move(index, 0, 15, 0, 5, 15) == [(0, 1, 7), (1, -1, 7), (3, 1, 7)]


def test_an_unbounded_side_has_no_border(index: Layered) -> None:
    register(index, 7, -INF, 20)
    register(index, 8, 10, INF)
    register(index, 9, -INF, INF)
    assert move(index, -1e308, 1e308) == [(0, -1, 7), (0, 1, 8)]
    assert holding(index, 15) == [7, 8, 9]


def test_a_stream_that_never_moved_before_needs_no_hint(index: Layered) -> None:
    for slot in range(50):
        register(index, slot, slot, slot + 0.5)
    assert move(index, 48.1, 49.1, stream=10_000) == [(0, -1, 48), (0, 1, 49)]


@pytest.mark.parametrize("question", [lambda index: None, lambda index: move(index, 0, 1)])
def test_a_slot_used_again_watches_its_new_region_only(index: Layered, question: Callable[[Layered], object]) -> None:
    register(index, 7, 10, 20)
    question(index)
    deregister(index, 7)
    question(index)
    assert move(index, 0, 15) == []
    register(index, 7, 100, 200)
    assert move(index, 0, 15, 150) == [(1, 1, 7)]
    assert holding(index, 15) == []
    assert holding(index, 150) == [7]


def test_an_empty_index_answers_with_nothing(index: Layered) -> None:
    assert move(index, 0, 1) == []
    assert holding(index, 0) == []
    register(index, 7, 10, 20)
    deregister(index, 7)
    assert move(index, 0, 15) == []


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        (lambda index: register(index, 7, 1, 2), "query slot 7 is registered already"),
        (lambda index: register(index, 8, 2, 2), "query slot 8 has a lower border that is not below"),
        (lambda index: register(index, 8, np.nan, 2), "query slot 8 has a lower border that is not below"),
        (lambda index: deregister(index, 8), "query slot 8 is not registered"),
        (lambda index: deregister(index, 7, 7), "query slot 7 comes twice"),
    ],
)
def test_a_wrong_change_is_refused_and_changes_nothing(
    index: Layered, change: Callable[[Layered], None], rule: str
) -> None:
    register(index, 7, 10, 20)
    with pytest.raises(ValueError, match=rule):
        change(index)
    index._check()
    assert move(index, 0, 15) == [(0, 1, 7)]


def test_in_the_plane_a_region_is_not_reported_when_only_the_path_or_its_corner_meets_it() -> None:
    index = BorderGrid()
    index.register(np.array([7], dtype=np.int32), np.array([[10.0], [10.0]]), np.array([[20.0], [20.0]]))
    # The grid walks along x first: through the region and out, into it and out at its corner, beside it.
    for path in [((5, 15), (25, 15)), ((5, 15), (15, 25)), ((15, 5), (25, 15)), ((5, 5), (15, 25))]:
        ends = np.array(path, dtype=np.float64)[:, :, None]
        assert index.moves(np.zeros(1, dtype=np.int32), ends[0], ends[1]).rows.size == 0


def test_the_processing_efficiency_of_local_moves_in_one_dimension_is_one() -> None:
    # The papers' figures 10 and 11: without jumps every delta query is an event.
    rng = np.random.default_rng(20060509)
    index = RegionSegmentList()
    lo = rng.uniform(0, 1e6, (1, 5_000))
    index.register(np.arange(5_000, dtype=np.int32), lo, lo + 1_000)
    previous = rng.uniform(0, 1e6, (1, 2_000))
    current = previous + rng.uniform(-500, 500, (1, 2_000))
    moves = index.moves(np.arange(2_000, dtype=np.int32), previous, current)
    assert moves.visits == moves.rows.size > 0


def test_a_thousand_registrations_leave_the_layer_of_many_as_it_is(index: Layered) -> None:
    many, lo = (
        np.arange(20_000, dtype=np.int32),
        np.random.default_rng(1).uniform(0, 1e4, (index.n_dims, 20_000)),
    )
    index.register(many, lo, lo + 1)
    move(index, 0, 1)
    standing = index._layers[0].structure
    index.register(many[:1_000] + 20_000, lo[:, :1_000], lo[:, :1_000] + 1)
    move(index, 0, 1)
    assert index._layers[0].structure is standing
    # Deregistration marks; only a layer that is mostly marks is built anew.
    index.deregister(many[:9_000])
    move(index, 0, 1)
    assert index._layers[0].structure is standing
    index.deregister(many[9_000:11_000])
    move(index, 0, 1)
    assert index._layers[0].structure is not standing
    index._check()


def squares(rng: np.random.Generator, n: int, extent: float) -> tuple[np.ndarray, np.ndarray]:
    lo = rng.uniform(0, extent, (2, n))
    return lo, lo + 1


def test_the_grid_takes_a_tenth_more_queries_in_place_and_is_then_built_anew() -> None:
    rng = np.random.default_rng(1)
    index = BorderGrid()
    slots = np.arange(17_600, dtype=np.int32)
    index.register(slots[:16_000], *squares(rng, 16_000, 1e4))
    move(index, 0, 1)
    standing = index._layers[0].structure
    for first in range(16_000, 17_200, 100):
        index.register(slots[first : first + 100], *squares(rng, 100, 1e4))
        move(index, 0, 1)
        assert index._layers[0].structure is standing
        # Where a few crowd, they find no room near by.
        assert sum(layer.n_live for layer in index._layers[1:]) < 100
    index.register(slots[17_200:], *squares(rng, 400, 1e4))
    index.register(slots[:1] + 20_000, *squares(rng, 1, 1e4))
    move(index, 0, 1)
    assert [layer.n_live for layer in index._layers] == [17_601]


def test_a_crowd_that_finds_no_room_in_the_grid_becomes_a_layer() -> None:
    rng = np.random.default_rng(1)
    index = BorderGrid()
    slots = np.arange(20_900, dtype=np.int32)
    index.register(slots[:20_000], *squares(rng, 20_000, 1e4))
    move(index, 0, 1)
    index.register(slots[20_000:], *squares(rng, 900, 0.5))
    assert holding(index, 0.75)
    assert len(index._layers) == 2
    assert sum(layer.n_live for layer in index._layers) == 20_900
    index.deregister(slots[20_000:])
    assert not set(holding(index, 0.75)) & set(slots[20_000:].tolist())


@pytest.mark.parametrize(("n_dims", "most"), [(2, 195), (3, 230), (9, 650)])
def test_the_grid_takes_no_more_bytes_a_query_than_it_may(n_dims: int, most: int) -> None:
    n_queries = 10_000
    lo = np.random.default_rng(1).uniform(0, 1e4, (n_dims, n_queries))
    index = BorderGrid(n_dims)
    index.register(np.arange(n_queries, dtype=np.int32), lo, lo + 100)
    move(index, 0, 1)
    assert index.nbytes <= most * n_queries


def test_one_change_at_a_time_makes_few_layers(index: Layered) -> None:
    for slot in range(3 * SMALLEST_LAYER):
        register(index, slot, slot, slot + 1)
        if slot % 50 == 0:
            move(index, 0, 1)
    move(index, 0, 1)
    assert len(index._layers) <= 3
