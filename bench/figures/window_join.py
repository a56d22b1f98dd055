"""Figure `window_join`: window joins by Spatial Join CQ, by shared joins and IBS trees, and by object decomposition."""

from collections.abc import Iterator

from bench.figures.figure import Figure, Panel, Point, Scale
from bench.window_join import DECOMPOSED, IBS, OURS, Setup, race

SIZES = {Scale.SMOKE: (20, 50, 100), Scale.REDUCED: (100, 1_000, 10_000), Scale.FULL: (100, 1_000, 10_000)}
N_QUERIES = {
    Scale.SMOKE: (100, 300),
    Scale.REDUCED: (10_000, 100_000),
    Scale.FULL: (10_000, 25_000, 50_000, 75_000, 100_000),
}
N_ROUNDS = {Scale.SMOKE: 1, Scale.REDUCED: 3, Scale.FULL: 7}


def _measure(scale: Scale) -> Iterator[Point]:
    for size, panel in zip(SIZES[scale], PANELS, strict=True):
        for n_queries in N_QUERIES[scale]:
            times = race(Setup(n_queries, size), (OURS, IBS, DECOMPOSED), N_ROUNDS[scale])
            for name, spread in times.items():
                yield Point(panel.name, name, n_queries, *spread)


PANELS = tuple(
    Panel(f"windows of {size:,}", f"microseconds a reading, windows of {size:,} readings", log_y=True)
    for size in SIZES[Scale.FULL]
)

FIGURE = Figure(
    name="window_join",
    source="Spatial Join CQ, Fig. 18",
    claim="window joins are found faster as points and boxes than by shared joins and IBS trees, and the more so the"
    " larger the windows",
    setup="two streams of four uniform attributes, an interval on each and a random comparison between two; one new"
    " reading on each side of full windows, counted; how many attributes is not said in the paper",
    x="queries",
    panels=PANELS,
    measure=_measure,
    log_x=True,
)
