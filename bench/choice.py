"""The cost model against the clock: what `auto` chooses, and what every structure takes for the same moves.

Claim: on the grid of the papers' figures, the structure that the model chooses is never more than 1.2 times
slower than the best of all. Papers' setups: BMQ-Processor, section 7: prices (N, W and FL varied), squares in a
city of 15 km with slow and fast objects, 10,000 queries in 1 to 9 dimensions. Ours: the same numbers with
positions and steps drawn evenly, and 100,000 squares of 60 to 500 m with steps of 330 m. Processor time, by turns
in one process, answers compared. Run `python -m bench.choice`: four minutes. It prints a second table, of wide regions
and short steps.
"""

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TextIO

import numpy as np

from bench.border_indexes import SEED, Setup
from bench.measure import race_moves, registered
from bmq.index.border.adaptive_border import MOVES_BETWEEN_LOOKS, Adaptive
from bmq.index.border.border_costs import Workload
from bmq.index.border.structures import STRUCTURES, OneKind
from bmq.records import Float64s, IndexKind

N_STREAMS = 2_000
N_STEPS = 10  # of each stream in a round
N_ROUNDS = 5
SLOW = 4.0  # a structure this much slower than the best in a short race is in no long one

PRICES = [
    Setup(1, 1e6, n_queries, width * 1e4, level * 1e4, N_STREAMS)
    for n_queries in (10_000, 30_000, 100_000)
    for width in (0.01, 0.03, 0.1)
    for level in (0.01, 0.03, 0.1, 0.3, 1.0)
]
SQUARES = [
    *(
        Setup(2, 15_000.0, n_queries, side, step, N_STREAMS)
        for n_queries in (500, 1_500, 5_000)
        for side in (500.0, 1_500.0, 5_000.0)
        for step in (35.0, 170.0)
    ),
    *(Setup(2, 15_000.0, 100_000, side, 330.0, N_STREAMS) for side in (60.0, 170.0, 500.0)),
]
CUBES = [Setup(n_dims, 1e5, 10_000, 100.0, 100.0 * n_dims**0.5, N_STREAMS) for n_dims in range(1, 10)]
SETUPS = [*PRICES, *SQUARES, *CUBES]
# Where `auto` chooses the n-D BMQ: regions wide on every axis, steps much shorter. Beyond the papers' figures, so not
# among those that the claim is of.
WIDE = [
    Setup(n_dims, 1e5, n_queries, side, step * n_dims**0.5, N_STREAMS)
    for n_dims, n_queries, side, step in (
        (2, 100, 3e3, 30.0),
        (3, 100, 1e4, 30.0),
        (5, 1_000, 1e4, 100.0),
        *((n_dims, 10_000, 1e4, 100.0) for n_dims in (5, 6, 9)),
    )
]


@dataclass(frozen=True, slots=True)
class Row:
    """One setup: what was chosen from which workload, and nanoseconds a move in each structure."""

    setup: Setup
    workload: Workload
    chosen: IndexKind
    ns: dict[IndexKind, float]
    auto_ns: float

    @property
    def ratio(self) -> float:
        """How much slower the chosen structure is than the best."""
        return self.ns[self.chosen] / min(self.ns.values())


def measure(setups: Iterable[Setup] = SETUPS, *, n_rounds: int = N_ROUNDS) -> Iterator[Row]:
    """Yield one row a setup."""
    for setup in setups:
        yield _measure(setup, n_rounds)


def worst_choice() -> float:
    """Return how much slower the chosen structure is than the best, at the setup where it is most: 100 s."""
    return max(row.ratio for row in measure())


def _measure(setup: Setup, n_rounds: int) -> Row:
    rng = np.random.default_rng(SEED)
    regions = setup.regions(rng, setup.n_queries)
    indexes: dict[str, OneKind] = {
        str(kind): OneKind(setup.n_dims, kind) for kind in STRUCTURES if kind.fits(setup.n_dims)
    }
    auto = Adaptive(setup.n_dims)
    for index in (*indexes.values(), auto):
        registered(index, regions)
    # A short race first: the slowest would take nearly all of the time, and are the best of nothing.
    short = race_moves(indexes, _positions(setup, 2, 200), regions, n_warm=1)
    ns = {name: times.spread.median for name, times in short.items()}
    quick = {name: indexes[name] for name in indexes if ns[name] <= SLOW * min(ns.values())}
    n_warm = -(-2 * MOVES_BETWEEN_LOOKS // (N_STREAMS * N_STEPS))
    _settle(auto, setup, n_warm)
    positions = _positions(setup, N_STEPS * (n_rounds + 1), N_STREAMS)
    times = race_moves({**quick, "auto": auto}, positions, regions, n_warm=1, n_steps=N_STEPS)
    ns |= {name: times[name].spread.median for name in quick}
    (workload,), (chosen,) = auto.workloads(), auto.kinds
    return Row(setup, workload, chosen, {IndexKind(name): ns[name] for name in ns}, times["auto"].spread.median)


def _settle(auto: Adaptive, setup: Setup, n_rounds: int) -> None:
    """Let ``auto`` see the movement, until it changes no structure for that many rounds."""
    kinds, unchanged = auto.kinds, 0
    streams = np.arange(N_STREAMS, dtype=np.int32)
    while unchanged < n_rounds:
        path = list(_positions(setup, N_STEPS, N_STREAMS))
        for before, after in pairwise(path):
            auto.moves(streams, before, after)
        unchanged = unchanged + 1 if auto.kinds == kinds else 0
        kinds = auto.kinds


def _positions(setup: Setup, n_steps: int, n_streams: int) -> Iterator[Float64s]:
    rng = np.random.default_rng(SEED + 1)
    positions = setup.positions(rng, n_streams)
    yield positions
    for _ in range(n_steps):
        positions = setup.next_positions(rng, positions)
        yield positions


def write(rows: Iterable[Row], out: TextIO) -> None:
    """Write one CSV line a row, and the worst ratio as the last."""
    out.write(f"dims,queries,side,step,chosen,ratio,auto_ns,{','.join(STRUCTURES)}\n")
    worst = 1.0
    for row in rows:
        worst = max(worst, row.ratio)
        ns = ",".join(f"{row.ns[kind]:.0f}" if kind in row.ns else "" for kind in STRUCTURES)
        setup = row.setup
        out.write(
            f"{setup.n_dims},{setup.n_queries},{setup.side:g},{setup.step:g},{row.chosen},{row.ratio:.2f},"
            f"{row.auto_ns:.0f},{ns}\n"
        )
        out.flush()
    out.write(f"# worst ratio {worst:.2f}\n")


if __name__ == "__main__":
    write(measure(), sys.stdout)
    write(measure(WIDE), sys.stdout)
