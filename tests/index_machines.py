"""Machines that put random changes and questions to an index and to the oracle, and indexes to put them to."""

import random
from collections.abc import Callable
from functools import partial

import numpy as np
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from bench.baselines.one_structure import BorderGrid
from bmq.index.base import BorderIndex, MatchIndex, Moves
from bmq.index.border.adaptive_border import Adaptive, ChangeRule
from bmq.index.border.structures import OneKind
from bmq.index.layered import Layered
from bmq.records import IndexKind
from tests.index_oracle import Crossing, IndexOracle

N_SLOTS, N_STREAMS = 12, 3  # few, so that slots are used again and streams move often

# A coarse grid puts readings exactly on borders, where the mistakes live. The largest floats overflow when an
# index measures how wide the regions spread.
coarse = st.integers(-5, 5).map(float)
odd = st.sampled_from([-0.0, 0.5, 5e-324, 1.7e308, -1.7e308])
values = st.one_of(coarse, coarse, coarse, odd)
ends = st.one_of(values, st.sampled_from([-np.inf, np.inf]))
intervals = st.tuples(ends, ends).filter(lambda pair: pair[0] != pair[1]).map(sorted)


def crossings(moves: Moves) -> list[Crossing]:
    """Return what was reported; sorted, but with any repetition."""
    assert (np.diff(moves.rows) >= 0).all()
    assert [moves.rows.dtype, moves.queries.dtype, moves.signs.dtype] == ["int32", "int32", "int8"]
    assert moves.visits >= moves.rows.size
    return sorted(zip(moves.rows.tolist(), moves.queries.tolist(), moves.signs.tolist(), strict=True))


class MatchMachine(RuleBasedStateMachine):
    """What every index is given and asked: queries come and go, values are looked up."""

    def __init__(self) -> None:
        super().__init__()
        self.index = self.make_index()
        self.oracle = IndexOracle()

    def make_index(self) -> MatchIndex:
        raise NotImplementedError

    def points(self) -> st.SearchStrategy[list[float]]:
        return st.lists(values, min_size=self.index.n_dims, max_size=self.index.n_dims)

    @precondition(lambda self: len(self.oracle.regions) < N_SLOTS)
    @rule(data=st.data(), n_alike=st.integers(1, 3))
    def register(self, data: st.DataObject, n_alike: int) -> None:
        free = sorted(set(range(N_SLOTS)) - set(self.oracle.regions))
        slots = data.draw(st.lists(st.sampled_from(free), min_size=1, unique=True), label="slots")
        region = st.lists(intervals, min_size=self.index.n_dims, max_size=self.index.n_dims)
        kinds = data.draw(st.lists(region, min_size=n_alike, max_size=n_alike), label="regions")
        # Cycled, so that many queries share a region.
        regions = np.array([kinds[i % n_alike] for i in range(len(slots))])
        lo, hi = regions[:, :, 0].T, regions[:, :, 1].T
        self.index.register(np.array(slots, dtype=np.int32), lo, hi)
        self.oracle.register(slots, lo, hi)

    @precondition(lambda self: self.oracle.regions)
    @rule(data=st.data())
    def deregister(self, data: st.DataObject) -> None:
        registered = sorted(self.oracle.regions)
        slots = data.draw(st.lists(st.sampled_from(registered), min_size=1, unique=True), label="slots")
        self.index.deregister(np.array(slots, dtype=np.int32))
        self.oracle.deregister(slots)

    @rule(data=st.data())
    def stab(self, data: st.DataObject) -> None:
        points = data.draw(st.lists(self.points(), max_size=6), label="values")
        at = np.array(points, dtype=np.float64).reshape(-1, self.index.n_dims).T
        assert crossings(self.index.stab(at)) == self.oracle.stab(at)

    @invariant()
    def every_invariant_of_the_index_holds(self) -> None:
        self.index._check()


class IndexMachine(MatchMachine):
    """And what a border index is asked: streams move."""

    index: BorderIndex

    def make_index(self) -> BorderIndex:
        raise NotImplementedError

    @initialize(data=st.data())
    def streams_begin_somewhere(self, data: st.DataObject) -> None:
        self.last = {stream: data.draw(self.points()) for stream in range(N_STREAMS)}

    @rule(data=st.data())
    def move(self, data: st.DataObject) -> None:
        streams = data.draw(st.lists(st.integers(0, N_STREAMS - 1), max_size=5), label="streams")
        previous, current = [], []
        for stream in streams:
            previous.append(self.last[stream])
            self.last[stream] = data.draw(self.points(), label=f"stream {stream} moves to")
            current.append(self.last[stream])
        self.ask(streams, previous, current)

    @rule(data=st.data(), stream=st.integers(0, N_STREAMS - 1))
    def move_from_where_no_hint_points(self, data: st.DataObject, stream: int) -> None:
        previous, current = data.draw(self.points()), data.draw(self.points())
        self.ask([stream], [previous], [current])

    def ask(self, streams: list[int], previous: list[list[float]], current: list[list[float]]) -> None:
        before = np.array(previous, dtype=np.float64).reshape(-1, self.index.n_dims).T
        after = np.array(current, dtype=np.float64).reshape(-1, self.index.n_dims).T
        moves = self.index.moves(np.array(streams, dtype=np.int32), before, after)
        assert crossings(moves) == self.oracle.moves(before, after)


def restless(n_dims: int, *, growth: int = 4, smallest_layer: int) -> Adaptive:
    """Return an index that takes another structure for a layer at nearly every question about it."""
    costs = random.Random(n_dims)
    return Adaptive(
        n_dims,
        growth=growth,
        smallest_layer=smallest_layer,
        room=1.0,
        rule=ChangeRule(1.0, moves_between_looks=1, rebuild_ns=0.0, predicted_ns=lambda kind, workload: costs.random()),
    )


# Those that tests know by no class of their own.
OTHER_KINDS: dict[str, Callable[..., Layered]] = {
    # Room for as many queries in place as there are, so that hardly any change builds a layer.
    **{f"{n_dims}-D grid with room": partial(BorderGrid, n_dims, room=1.0) for n_dims in (2, 3, 4)},
    **{f"{n_dims}-D scan": partial(OneKind, n_dims, IndexKind.SCAN) for n_dims in (1, 2, 3)},
    **{f"{n_dims}-D stabs": partial(OneKind, n_dims, IndexKind.STAB_DIFFERENCE) for n_dims in (1, 2, 3)},
    **{
        f"{n_dims}-D adaptive": partial(Adaptive, n_dims, rule=ChangeRule(moves_between_looks=1))
        for n_dims in (1, 2, 3)
    },
    **{f"{n_dims}-D restless": partial(restless, n_dims) for n_dims in (1, 2, 3)},
}
