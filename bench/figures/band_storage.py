"""Figure `band_storage`: bytes of the published structure for band joins, and of the service's, as tau grows."""

from collections.abc import Iterator

from bench.band_join import OURS, PUBLISHED, Setup, band_join
from bench.baselines.band_search import InputSensitive
from bench.figures.figure import Figure, Panel, Point, Scale, counted

TAUS = {Scale.SMOKE: (1, 3), Scale.REDUCED: (1, 4, 16, 64), Scale.FULL: (1, 2, 4, 8, 16, 32, 64)}
SIZES = {Scale.SMOKE: (200, 300), Scale.REDUCED: (10_000, 20_000), Scale.FULL: (20_000, 100_000)}


def _measure(scale: Scale) -> Iterator[Point]:
    n_values, n_queries = SIZES[scale]
    for tau in TAUS[scale]:
        setup = Setup(n_values, n_queries, tau)
        values, bands = setup.values(), setup.bands()
        yield counted("all", PUBLISHED, tau, InputSensitive(values, *bands).nbytes / 1e6)
        yield counted("all", OURS, tau, band_join(values, *bands).nbytes / 1e6)


FIGURE = Figure(
    name="band_storage",
    source="Continuous band joins, Lemma 5 (no measurement in the paper)",
    claim="the published structure grows with m tau, the service's only with the numbers of values and queries",
    setup="20,000 queries around tau hotspots and 10,000 values (100,000 and 20,000 in full), counted",
    x="size of the stabbing set, tau",
    panels=(Panel("all", "MB", log_y=True),),
    measure=_measure,
    log_x=True,
)
