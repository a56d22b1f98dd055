"""The published structure for band joins, and its rivals, against their definition."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.baselines.band_search import InputSensitive, merged_pairs, nested_pairs

pytestmark = pytest.mark.property

numbers = st.integers(-8, 8).map(lambda n: n / 2)
intervals = st.lists(st.tuples(numbers, numbers).map(lambda two: (min(two), max(two))), min_size=1, max_size=12)


@given(values=st.lists(numbers, min_size=1, max_size=8, unique=True), bands=intervals, displacement=numbers)
def test_all_find_the_pairs_and_the_queries_that_have_some(
    values: list[float], bands: list[tuple[float, float]], displacement: float
) -> None:
    x = np.array(sorted(values))
    lo, hi = np.array(sorted(bands)).T.copy()
    expected = {
        (at, query)
        for at in range(x.size)
        for query in range(lo.size)
        if lo[query] <= x[at] + displacement <= hi[query]
    }
    room = np.empty((2, 200), dtype=np.int32)

    structure = InputSensitive(x, lo, hi)

    found = structure.pairs(displacement).T.tolist()
    assert sorted(map(tuple, found)) == sorted(expected)
    assert sorted(structure.queries(displacement).tolist()) == sorted({query for _, query in expected})
    for search in (merged_pairs, nested_pairs):
        n = search(x, lo, hi, displacement, room)
        assert {tuple(pair) for pair in room[:, :n].T.tolist()} == expected
        assert n == len(expected)
