"""Every match index, whatever happens to it, says what the definition says."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import run_state_machine_as_test

from bench.baselines.virtual_constructs import Decomposition, Labelling, Lci, Sci, Vcr
from bmq.index.match.construct_indexes import SciIndex, VcrIndex
from bmq.index.match.construct_lists import VirtualConstructIndex
from bmq.index.match.virtual_grid import VirtualGrid
from bmq.kernels.match.virtual_constructs import Axis
from bmq.records import Float64s
from tests.examples import times
from tests.index_machines import MatchMachine, crossings
from tests.index_oracle import IndexOracle

pytestmark = pytest.mark.property

# Ranges that some regions reach over and some values lie outside of; a unit that is no integer.
LINE = VirtualGrid((Axis(-3.0, 1.0, 7),), 4)
ODD_LINE = VirtualGrid((Axis(-4.5, 0.75, 9),), 2)
PLANE = VirtualGrid((Axis(-3.0, 1.0, 7), Axis(-4.0, 1.0, 8)), 4)
ODD_PLANE = VirtualGrid((Axis(-4.5, 0.75, 9), Axis(0.0, 1.5, 2)), 2)
DECOMPOSED = {"VCR-SD": Decomposition.SIMPLE, "VCR-OD": Decomposition.OVERLAPPED}

KINDS: dict[str, Callable[..., VirtualConstructIndex]] = {
    "SCI of the service, auto": SciIndex,
    "VCR of the service, auto": VcrIndex,
    **{
        f"{name} {where}": partial(make, grid)
        for name, make in (("SCI", Sci), ("LCI", Lci))
        for where, grid in (("integers", LINE), ("odd units", ODD_LINE), ("auto", None))
    },
    **{
        f"{name} {where}": partial(Vcr, grid, decomposition=decomposition)
        for name, decomposition in DECOMPOSED.items()
        for where, grid in (("integers", PLANE), ("odd units", ODD_PLANE), ("auto", None))
    },
    **{
        f"{name} overlapped": partial(make, decomposition=Decomposition.OVERLAPPED)
        for name, make in (("SCI", Sci), ("LCI", Lci))
    },
    "LCI by point": partial(Lci, LINE, labelling=Labelling.BY_POINT),
    "VCR-OD by point": partial(Vcr, PLANE, decomposition=Decomposition.OVERLAPPED, labelling=Labelling.BY_POINT),
}


@pytest.mark.parametrize("growth", [1, 4])
@pytest.mark.parametrize("kind", KINDS)
def test_any_sequence_of_changes_and_questions_gets_the_answers_of_the_definition(kind: str, growth: int) -> None:
    class Machine(MatchMachine):
        def make_index(self) -> VirtualConstructIndex:
            # Layers as small as one query, so that there are several of them, and they merge all the time.
            return KINDS[kind](growth=growth, smallest_layer=1)

    run_state_machine_as_test(Machine, settings=settings(stateful_step_count=15, max_examples=times(0.5)))


def spread(rng: np.random.Generator, scale: str, shape: tuple[int, ...]) -> Float64s:
    """Return numbers that lie evenly, on integers, or around one with outliers far away."""
    if scale == "even":
        return rng.uniform(0, 100, shape)
    if scale == "integers":
        return rng.integers(0, 100, shape).astype(np.float64)
    return rng.standard_cauchy(shape)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.endswith("auto")])
@given(
    seed=st.integers(0, 2**32 - 1),
    scale=st.sampled_from(["even", "integers", "outliers"]),
    size=st.sampled_from([1e-3, 1.0, 30.0]),
)
@settings(max_examples=times(0.15))
def test_many_queries_get_the_answers_of_the_definition_in_memory_that_does_not_depend_on_their_sides(
    kind: str, seed: int, scale: str, size: float
) -> None:
    rng = np.random.default_rng(seed)
    index = KINDS[kind](smallest_layer=50)
    oracle = IndexOracle()
    for part in np.array_split(rng.permutation(600).astype(np.int32), 4):
        lo = spread(rng, scale, (index.n_dims, part.size))
        # Sides over six powers of ten, and some without an end.
        hi = np.nextafter(lo + size * rng.lognormal(0, 3, lo.shape), np.inf)
        if scale == "integers":
            hi = np.ceil(hi)
        lo[rng.random(lo.shape) < 0.03] = -np.inf
        hi[rng.random(hi.shape) < 0.03] = np.inf
        index.register(part, lo, hi)
        oracle.register(part.tolist(), lo, hi)
        gone = part[rng.random(part.size) < 0.2]
        index.deregister(gone)
        oracle.deregister(gone.tolist())

        at = spread(rng, scale, (index.n_dims, 300))

        assert crossings(index.stab(at)) == oracle.stab(at)
    settled: Any = index._settled()
    for structure, table in settled:
        assert structure.n_entries <= 16 * len(table)
        assert structure.nbytes <= 300 * len(table) + 20_000
