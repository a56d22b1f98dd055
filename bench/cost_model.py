"""Fits the constants of the cost model (`bmq.index.border.border_costs.NS`) to measured times, and prints them.

For each structure the smallest sum of squared relative errors, with no constant below zero, over the setups of
`bench.choice` and others around them: few queries, long jumps, large sides, more dimensions, towns. An error counts for
more where the structure is among the best. Run `python -m bench.cost_model`: five minutes on an idle core. Copy
what it prints to `service/bmq/index/border/border_costs.py`, then see with `bench.choice` whether it decides well.
"""

from dataclasses import replace

import numpy as np
from scipy.optimize import nnls

from bench.border_indexes import EARTH, LAND, Setup
from bench.choice import N_STREAMS, SETUPS, SLOW, Row, measure
from bmq.index.border.border_costs import NS, terms
from bmq.index.border.structures import STRUCTURES
from bmq.records import IndexKind

OTHERS = [
    *(Setup(1, 1e6, n_queries, 1e4, step, N_STREAMS) for n_queries in (8, 64, 512, 2_000) for step in (100.0, 1e5)),
    *(Setup(2, 15e3, n_queries, 500.0, step, N_STREAMS) for n_queries in (8, 64, 200) for step in (100.0, 5e3)),
    *(Setup(2, 15e3, n_queries, 50.0, step, N_STREAMS) for n_queries in (2_000, 20_000) for step in (100.0, 5e3)),
    *(Setup(n_dims, 1e5, 10_000, side, 1e3, N_STREAMS) for n_dims in (3, 5, 7) for side in (1e3, 1e4)),
    *(Setup(n_dims, 1e5, n_queries, 5e3, 3e3, N_STREAMS) for n_dims in (3, 6) for n_queries in (8, 64, 1_000)),
    *(replace(LAND, side=side, n_streams=N_STREAMS) for side in (100.0, 300.0, 1_000.0, 3_000.0)),
    replace(EARTH, n_streams=N_STREAMS),
]


def main() -> None:
    """Measure, fit and print."""
    rows = list(measure([*SETUPS, *OTHERS], n_rounds=3))
    print("NS: dict[IndexKind, tuple[float, ...]] = {")
    for kind in STRUCTURES:
        print(f"    IndexKind.{kind.name}: ({', '.join(f'{constant:.3g}' for constant in fitted(kind, rows))}),")
    print("}")


def fitted(kind: IndexKind, rows: list[Row]) -> list[float]:
    """Return the constants of ``kind`` that the rows show; print how far off they are as a comment."""
    # Only where it is near the best: a long race has timed it there, and nothing is decided elsewhere.
    rows = [row for row in rows if row.ns.get(kind, np.inf) <= SLOW * min(row.ns.values())]
    measured = np.array([row.ns[kind] for row in rows])
    best = np.array([min(row.ns.values()) for row in rows])
    counts = np.array([terms(kind, row.workload) for row in rows])
    weights = np.sqrt(best / measured)
    constants, _ = nnls(counts * (weights / measured)[:, None], weights)
    off, old = counts @ constants / measured, counts @ np.array(NS[kind]) / measured
    rms = float(np.sqrt(np.mean((off - 1) ** 2)))
    print(f"# {kind}: predicted / measured {off.min():.2f} to {off.max():.2f}, rms error {rms:.2f}", end="; ")
    print(f"with the constants in force {old.min():.2f} to {old.max():.2f}")
    return [float(constant) for constant in constants]


if __name__ == "__main__":
    main()
