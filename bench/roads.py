"""Objects that travel on the streets of a made-up city, and the squares that watch them.

In the style of the papers' generator (Brinkhoff, *A framework for generating network-based moving objects*, 2002)
and as large as its map of Oldenburg: 15 km by 15 km, 6,105 nodes, 7,035 edges.

    #===o===o===#     = and # arterial roads, each 8th line of a grid of streets; the middle ones are main roads;
    #   |       #     - and | side streets. Many are removed, but each node can be reached from each other one;
    #   o---o   #     nodes lie a little beside their places in the grid.
    #       |   #
    #===o===o===#     An object takes the fastest path to its destination, then picks the next one.

Departures: the map is made up; destinations are drawn from 400 nodes and not from all, since each needs a tree of
fastest paths; there are no traffic jams, and an object never leaves the city.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
from numba import njit
from scipy.sparse import coo_array
from scipy.sparse.csgraph import dijkstra, minimum_spanning_tree

from bmq.records import Float64s, Int8s, Int32s, Int64s

SAMPLE_SECONDS = 30.0  # BMQ-Processor, section 7.2.1: the location update period
KMH = 1 / 3.6  # in metres a second


@dataclass(frozen=True, slots=True)
class City:
    """What a city is like; the defaults are like the papers' Oldenburg.

    Attributes
    ----------
    extent : side of the square, in metres.
    n_across : streets in each direction before any is removed, so ``n_across ** 2`` nodes.
    n_edges : how many edges stay.
    arterial_every : of so many streets one is an arterial road.
    jitter : how far a node may be from its place, in distances between streets; below 0.25 no two edges cross.
    n_destinations : how many nodes are destinations; at least 2.
    town : standard deviation of the centres of regions around the centre of the city, in metres.
    seed : of the map and the destinations.
    """

    extent: float = 15_000.0
    n_across: int = 78
    n_edges: int = 7_035
    arterial_every: int = 8
    jitter: float = 0.2
    n_destinations: int = 400
    town: float = 2_500.0  # not in the paper, which says "normal"; so 99.7 % of centres are in the city
    seed: int = 20060509


@dataclass(frozen=True, slots=True)
class Kind:
    """How fast a kind of objects is on main roads, arterial roads and side streets, in km/h."""

    speeds_kmh: tuple[float, float, float]

    @property
    def fastest(self) -> float:
        """How fast an object of this kind is at most, in m/s."""
        return max(self.speeds_kmh) * KMH


OLDENBURG = City()
# BMQ-Processor, section 7.2.1: 60 km/h at most and 20 on average; 12 and 4.3. The speeds on the smaller roads are
# those from which the averages come out (tests/unit/bench/test_roads.py).
FAST = Kind((60.0, 12.0, 8.0))
SLOW = Kind((12.0, 3.4, 2.1))


@dataclass(frozen=True, slots=True)
class Streets:
    """A street map.

    Attributes
    ----------
    nodes : float64[2, n_nodes], places in metres from the lower left corner.
    edges : int32[2, n_edges], the nodes at both ends.
    lengths : float64[n_edges], in metres.
    classes : int8[n_edges], 0 main road, 1 arterial road, 2 side street.
    """

    nodes: Float64s
    edges: Int32s
    lengths: Float64s
    classes: Int8s


@dataclass(frozen=True, slots=True)
class Travels:
    """Where objects were at each sample.

    Attributes
    ----------
    positions : float64[n_samples, 2, n_objects], in metres.
    travelled : float64[n_samples, n_objects], metres on the road since the first sample.
    """

    positions: Float64s
    travelled: Float64s


def positions(kind: Kind, n_objects: int, n_samples: int, seed: int, city: City = OLDENBURG) -> Float64s:
    """Return where ``n_objects`` objects are every 30 s: float64[n_samples, 2, n_objects], in metres."""
    return travels(kind, n_objects, n_samples, seed, city).positions


def squares(n_queries: int, side: float, seed: int, city: City = OLDENBURG) -> tuple[Float64s, Float64s]:
    """Return lower and upper borders, float64[2, n_queries], of squares around the centre of the city.

    Centres are distributed normally (BMQ-Processor, section 7.2.1); a square may reach beyond the city.
    """
    centres = np.random.default_rng(seed).normal(city.extent / 2, city.town, (2, n_queries))
    return centres - side / 2, centres + side / 2


def travels(kind: Kind, n_objects: int, n_samples: int, seed: int, city: City = OLDENBURG) -> Travels:
    """Return the positions of ``n_objects`` objects and how far they have come.

    Each starts at a random node. O(n_objects * nodes passed), and once for each kind and city a tree of fastest paths
    to each destination: a second or two.
    """
    streets = make_streets(city)
    destinations, ways = _fastest_ways(kind, city)
    rng = np.random.default_rng(seed)
    starts = rng.integers(0, streets.nodes.shape[1], n_objects)
    found = Travels(np.empty((n_samples, 2, n_objects)), np.zeros((n_samples, n_objects)))
    _travel(
        streets.nodes,
        streets.edges,
        streets.lengths,
        _speeds(kind, streets),
        destinations,
        ways,
        starts,
        rng,
        found.positions,
        found.travelled,
    )
    return found


@cache
def make_streets(city: City = OLDENBURG) -> Streets:
    """Return the street map of ``city``. Connected: the edges that are never removed hold a spanning tree."""
    rng = np.random.default_rng(city.seed)
    lines = np.arange(city.n_across)
    at = lines[:, None] * city.n_across + lines  # node by (street along y, street along x)
    edges = np.concatenate(
        [np.stack((at[:, :-1].ravel(), at[:, 1:].ravel())), np.stack((at[:-1].ravel(), at[1:].ravel()))], axis=1
    )
    class_of_line = np.where(lines % city.arterial_every == city.arterial_every // 2, 1, 2).astype(np.int8)
    class_of_line[city.n_across // 2] = 0
    across, along = np.divmod(edges, city.n_across)
    classes = class_of_line[np.where(across[0] == across[1], across[0], along[0])]
    # A spanning tree that prefers large roads; then those; then any. The weights are positive, as zero is no edge.
    weights = 1.0 + classes + rng.random(classes.size)
    tree = minimum_spanning_tree(_matrix(edges, weights, at.size)).tocoo()
    in_tree = np.isin(edges[0] * at.size + edges[1], tree.row.astype(np.int64) * at.size + tree.col)
    kept = np.sort(np.argsort(np.where(in_tree, 0.0, weights))[: city.n_edges])
    places = np.stack(np.divmod(np.arange(at.size), city.n_across)) + 0.5
    nodes = (places + rng.uniform(-city.jitter, city.jitter, places.shape)) * (city.extent / city.n_across)
    edges = edges[:, kept].astype(np.int32)
    lengths = np.hypot(*(nodes[:, edges[0]] - nodes[:, edges[1]]))
    return Streets(nodes, edges, lengths, classes[kept])


@cache
def _fastest_ways(kind: Kind, city: City) -> tuple[Int32s, Int32s]:
    """Return the destinations, int32[n], and on which edge to leave each node for each, int32[n, n_nodes].

    An edge of -1 says that the node is the destination.
    """
    streets = make_streets(city)
    n_nodes = streets.nodes.shape[1]
    destinations = np.random.default_rng(city.seed).choice(n_nodes, city.n_destinations, replace=False).astype(np.int32)
    seconds = streets.lengths / _speeds(kind, streets)
    # All roads go both ways, so the path from the destination is the path to it.
    _, next_nodes = dijkstra(
        _matrix(streets.edges, seconds, n_nodes), directed=False, indices=destinations, return_predecessors=True
    )
    keys = streets.edges[0].astype(np.int64) * n_nodes + streets.edges[1]  # lower node first
    here = np.arange(n_nodes)
    wanted = np.minimum(here, next_nodes) * np.int64(n_nodes) + np.maximum(here, next_nodes)
    order = np.argsort(keys)
    ways = order[np.minimum(np.searchsorted(keys, wanted, sorter=order), keys.size - 1)]
    return destinations, np.where(next_nodes < 0, -1, ways).astype(np.int32)


def _matrix(edges: Int32s, weights: Float64s, n_nodes: int) -> coo_array:
    return coo_array((weights, (edges[0], edges[1])), shape=(n_nodes, n_nodes))


def _speeds(kind: Kind, streets: Streets) -> Float64s:
    """Return the speed on each edge, float64[n_edges] in m/s."""
    speeds: Float64s = np.array(kind.speeds_kmh)[streets.classes] * KMH
    return speeds


@njit(cache=True)
def _travel(
    nodes: Float64s,
    edges: Int32s,
    lengths: Float64s,
    speeds: Float64s,
    destinations: Int32s,
    ways: Int32s,
    starts: Int64s,
    rng: np.random.Generator,
    positions: Float64s,
    travelled: Float64s,
) -> None:
    """Fill ``positions`` and ``travelled`` (see `Travels`). Raises nothing; O(nodes passed)."""
    n_samples, _, n_objects = positions.shape
    for i in range(n_objects):
        node, goal = starts[i], rng.integers(0, destinations.size)
        along = 0.0  # metres from `node` on the edge that leads on
        positions[0, :, i] = nodes[:, node]
        for sample in range(1, n_samples):
            metres, seconds = 0.0, SAMPLE_SECONDS
            edge = ways[goal, node]
            while edge < 0 or (lengths[edge] - along) <= seconds * speeds[edge]:
                if edge < 0:
                    goal = rng.integers(0, destinations.size)
                else:
                    metres += lengths[edge] - along
                    seconds -= (lengths[edge] - along) / speeds[edge]
                    node, along = edges[0, edge] + edges[1, edge] - node, 0.0
                edge = ways[goal, node]
            along += seconds * speeds[edge]
            metres += seconds * speeds[edge]
            share = along / lengths[edge]
            other = edges[0, edge] + edges[1, edge] - node
            for k in range(2):
                positions[sample, k, i] = nodes[k, node] + share * (nodes[k, other] - nodes[k, node])
            travelled[sample, i] = travelled[sample - 1, i] + metres
