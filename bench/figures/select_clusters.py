"""Figure `select_clusters`: the size of a data cluster, and of a batch."""

from collections.abc import Callable, Iterator

from bench.figures.figure import Figure, Panel, Point, Scale
from bench.measure import registered
from bench.select import BATCH, SEED, Selections, race
from bmq.index.base import Moves
from bmq.index.match.select_index import SelectIndex
from bmq.kernels.match.cluster_search import MAX_CLUSTER
from bmq.records import Float64s

N_QUERIES = {Scale.SMOKE: 200, Scale.REDUCED: 10_000, Scale.FULL: 10_000}
N_VALUES = {Scale.SMOKE: (300,), Scale.REDUCED: (2_000, 10_000), Scale.FULL: (2_000, 4_000, 6_000, 8_000, 10_000)}
CLUSTERS = {
    Scale.SMOKE: (64, MAX_CLUSTER),
    Scale.REDUCED: (32, 64, 128, MAX_CLUSTER),
    Scale.FULL: (16, 32, 64, 96, 128, 160, 192, 224, MAX_CLUSTER),
}
N_ROUNDS = {Scale.SMOKE: 3, Scale.REDUCED: 5, Scale.FULL: 15}


def _measure(scale: Scale) -> Iterator[Point]:
    for n_attributes in (4, 8):
        selections = Selections(n_attributes, n_attributes)
        regions = selections.regions(N_QUERIES[scale], SEED)
        asks: dict[str, Callable[[Float64s], Moves]] = {}
        for cluster in CLUSTERS[scale]:
            index = SelectIndex(n_attributes, cluster=cluster)
            registered(index, regions)
            asks[f"{BATCH} {cluster}"] = index.stab
        for n_values in N_VALUES[scale]:
            batches = (selections.values(n_values, SEED + 1 + number) for number in range(N_ROUNDS[scale] + 1))
            times = race(asks, batches, regions, n_values)
            for cluster in CLUSTERS[scale]:
                spread = times[f"{BATCH} {cluster}"].spread
                yield Point(f"{n_attributes} attributes", f"batches of {n_values}", cluster, *spread)


FIGURE = Figure(
    name="select_clusters",
    source="Spatial Join CQ paper, Table 3",
    claim="a larger data cluster is better up to some size, about which the time is flat; so is a larger batch",
    setup="10,000 queries with a condition on every attribute, values uniform; the paper's clusters go on to 400"
    f" values, ours end at {MAX_CLUSTER}, the bits of a set; the paper gives the best sizes only",
    x="values of a data cluster",
    panels=tuple(Panel(f"{n} attributes", f"ns a value, {n} attributes", log_y=True) for n in (4, 8)),
    measure=_measure,
    log_x=True,
)
