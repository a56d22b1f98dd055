"""The structures alone, against a comparison of every query with every value, and what they refuse."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bmq

coarse = st.integers(-4, 4).map(float)


@st.composite
def boxes(draw: st.DrawFn) -> tuple[int, np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Draw dimensions, lower and upper borders, and values, one row each."""
    n_dims = draw(st.integers(1, 3))
    point = st.lists(coarse, min_size=n_dims, max_size=n_dims)
    corners = draw(st.lists(st.tuples(point, point), min_size=1, max_size=6))
    a, b = (np.array([corner[k] for corner in corners]) for k in (0, 1))
    values = np.array(draw(st.lists(point, min_size=2, max_size=8)))
    return n_dims, np.minimum(a, b), np.maximum(a, b) + 1, values


def held(lo: Any, hi: Any, values: Any) -> set[tuple[int, int]]:
    """Return (row, query) for each query that holds a value."""
    inside = ((lo[None] <= values[:, None]) & (values[:, None] < hi[None])).all(axis=2)
    return set(zip(*(found.tolist() for found in np.nonzero(inside)), strict=True))


@given(drawn=boxes())
def test_both_indexes_hold_what_the_regions_hold(drawn: Any) -> None:
    n_dims, lo, hi, values = drawn
    border, match = bmq.BorderIndex(n_dims), bmq.MatchIndex(n_dims)
    for index in (border, match):
        index.register(range(len(lo)), lo, hi)
    before, after = held(lo, hi, values[:-1]), held(lo, hi, values[1:])

    for index in (border, match):
        found = index.stab(values)
        assert set(zip(found.rows.tolist(), found.queries.tolist(), strict=True)) == held(lo, hi, values)
        assert len(index) == len(lo)
    moves = border.move(values[:-1], values[1:])

    crossings = set(zip(moves.rows.tolist(), moves.queries.tolist(), moves.signs.tolist(), strict=True))
    assert crossings == {(*one, 1) for one in after - before} | {(*one, -1) for one in before - after}
    border.deregister(range(len(lo)))
    assert len(border) == border.stab(values).rows.size == 0


@given(
    bands=st.lists(st.tuples(coarse, coarse), min_size=1, max_size=4),
    moves=st.lists(st.tuples(st.sampled_from(["left", "right"]), st.integers(0, 2), coarse), max_size=8),
)
def test_the_pairs_of_a_band_join_are_those_in_its_bands(bands: Any, moves: Any) -> None:
    lo, hi = (np.array(ends) for ends in zip(*map(sorted, bands), strict=True))
    join = bmq.BandJoin()
    join.register(range(len(bands)), lo, hi)
    last: dict[str, dict[int, float]] = {"left": {}, "right": {}}
    pairs: set[tuple[int, int, int]] = set()
    for side, stream, value in moves:
        last[side][stream] = value
        now = {
            (query, left, right)
            for query in range(len(bands))
            for left, a in last["left"].items()
            for right, b in last["right"].items()
            if lo[query] <= a - b <= hi[query]
        }

        changes = join.move([side], [stream], [value])

        others = zip(changes.queries.tolist(), changes.others.tolist(), changes.signs.tolist(), strict=True)
        found = {((q, stream, o) if side == "left" else (q, o, stream), sign) for q, o, sign in others}
        assert found == {(pair, 1) for pair in now - pairs} | {(pair, -1) for pair in pairs - now}
        pairs = now
    in_band = join.pairs(range(len(bands)))
    assert set(zip(in_band.queries.tolist(), in_band.left.tolist(), in_band.right.tolist(), strict=True)) == pairs


def test_streams_with_other_keys_are_no_pair_and_nan_takes_a_value_back() -> None:
    join = bmq.BandJoin()
    join.register([3], [-1.0], [1.0])

    join.move(["left", "left"], [0, 1], [5.0, 5.0], keys=[0, 1])
    assert join.move(["right"], [0], [5.0], keys=[1]).others.tolist() == [1]
    assert join.move(["left"], [1], [float("nan")]).signs.tolist() == [-1]
    assert len(join) == 1
    assert join.nbytes > 0
    join.deregister([3])
    assert len(join) == 0


@pytest.mark.parametrize("structure", ["region_segments", "stab_difference", "scan"])
def test_every_structure_gives_the_same(structure: Any) -> None:
    index = bmq.BorderIndex(1, structure)
    index.register([5], [0.0], [1.0])

    moves = index.move([-1.0], [0.0], streams=[4])

    assert (moves.queries.tolist(), moves.signs.tolist()) == ([5], [1])
    assert index.nbytes > 0


def border() -> bmq.BorderIndex:
    index = bmq.BorderIndex(2)
    index.register([0], [[0.0, 0.0]], [[1.0, 1.0]])
    return index


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: bmq.BorderIndex(0), r"n_dims is 0, but an index has 1 to 64 dimensions"),
        (
            lambda: bmq.BorderIndex(1, "border_grid"),
            r"structure is 'border_grid', but with 1 dimensions there are auto",
        ),
        (lambda: border().register([0], [[0, 0]], [[1, 1]]), r"query slot 0 is registered already"),
        (lambda: border().register([1], [[0, 1]], [[1, 1]]), r"lower border that is not below the upper one"),
        (lambda: border().register([-1], [[0, 0]], [[1, 1]]), r"queries holds -1, but numbers go from 0"),
        (lambda: border().register([0.5], [[0, 0]], [[1, 1]]), r"queries has .* type float64, but whole numbers"),
        (lambda: border().register([1], [0, 0], [1, 1]), r"lo has the shape \(2,\), but .*: \(1, 2\). Reshape"),
        (lambda: border().deregister([1]), r"query slot 1 is not registered"),
        (lambda: border().stab([[0.0, float("nan")]]), r"values\[0\] is .*, but a value is finite"),
        (lambda: border().move([[0.0, 0.0]], [[0.0, 0.0]] * 2), r"current has the shape \(2, 2\)"),
        (lambda: border().move([[0, 0]], [[1, 1]], [1, 2]), r"streams has 2 elements, but there are 1 moves"),
    ],
)
def test_an_index_refuses_with_value_rule_and_way_out(wrong: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        wrong()


def band() -> bmq.BandJoin:
    join = bmq.BandJoin()
    join.register([0], [-1], [1])
    return join


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: band().register([0], [0], [1]), r"query 0 is registered already"),
        (lambda: band().register([1, 1], [0, 0], [1, 1]), r"query 1 comes twice"),
        (lambda: band().register([1], [2], [1]), r"the band of query 1 is \[2.0, 1.0\]"),
        (lambda: band().register([1], [float("inf")], [float("inf")]), r"the band of query 1 is"),
        (lambda: band().register([1], [0, 0], [1]), r"lo has the shape \(2,\), but 1 numbers"),
        (lambda: band().deregister([1]), r"query 1 is not registered"),
        (lambda: band().pairs([1]), r"query 1 is not registered"),
        (lambda: band().move(["up"], [0], [1.0]), r"sides holds 'up', but it is \"left\" or \"right\""),
        (lambda: band().move([], [0], [1.0]), r"sides has the shape \(0,\)"),
        (lambda: band().move(["left"], [0], [float("inf")]), r"values holds inf, but a value is finite or NaN"),
        (lambda: band().move(["left"], [0], [1.0], keys=[1, 2]), r"keys has 2 elements"),
    ],
)
def test_a_band_join_refuses_with_value_rule_and_way_out(wrong: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        wrong()
