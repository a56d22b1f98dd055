"""Figure `band_search`: what a search among band joins takes as the stabbing set grows."""

from collections.abc import Iterator

from bench.band_join import MERGE, NESTED, OURS, PUBLISHED, Setup, race
from bench.figures.figure import Figure, Panel, Point, Scale

TAUS = {Scale.SMOKE: (1, 3), Scale.REDUCED: (1, 10, 100), Scale.FULL: (1, 3, 10, 30, 100, 300)}
SIZES = {Scale.SMOKE: (200, 300), Scale.REDUCED: (20_000, 100_000), Scale.FULL: (100_000, 100_000)}
N_NESTED = 2_000  # values at which the nested loop takes part: 4,000 times as many would take minutes a search


def _measure(scale: Scale) -> Iterator[Point]:
    n_values, n_queries = SIZES[scale]
    for tau in TAUS[scale]:
        names = (OURS, PUBLISHED, MERGE, NESTED) if n_values <= N_NESTED else (OURS, PUBLISHED, MERGE)
        for name, spread in race(Setup(n_values, n_queries, tau), names).items():
            yield Point("all", name, tau, *spread)


FIGURE = Figure(
    name="band_search",
    source="Continuous band joins, Lemma 5 (no measurement in the paper)",
    claim="a search takes a time that grows with the logarithm of m tau (published), or with tau (ours), not with the"
    " number of queries",
    setup="100,000 queries around tau hotspots, 20,000 values (100,000 in full); answers of some pairs, or none",
    x="size of the stabbing set, tau",
    panels=(Panel("all", "microseconds a search", log_y=True),),
    measure=_measure,
    log_x=True,
)
