"""Polygons of 50 vertices against boxes: what the index of shapes costs beside that of boxes.

Claim: 10,000 polygons give at least half the readings a second of 10,000 boxes at an equal event rate. That is meant
of the whole service; this is the index alone, where the exact test weighs most, and what a worker does from JSON to
events, which is all but Spark's part. Ours: the vehicles of `workload`, whose
steps are 30 m, 0.1 events a reading; the polygons are stars whose perimeter is that of the boxes, so that steps
cross them as often (Buffon). Besides: the exact test of a pair against shapely's. Answers are checked first on a
sample of the moves. Run `python -m bench.polygons`: half a minute.
"""

import statistics
import time
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pyarrow as pa
import shapely

from bench.workload import PLANE_M, Workload
from bmq.index.base import Moves
from bmq.index.region_index import Areas
from bmq.index.shape.shape_store import ShapeStore
from bmq.monitor.monitor import Monitor
from bmq.records import Clock, Feed, Float64s, Installation, Put, Region, RegionQuery, Shape, ShapeKind
from bmq.records.column_records import concat
from bmq.wire.event_messages import render_crossings
from bmq.wire.frames import pack_readings, unpack_readings
from bmq.wire.readings import Decoder
from bmq.wire.state_bytes import pack_delta

SEED = 20060509
N_VERTICES = 50
N_ROUNDS = 9
N_WARM = 2
N_CHECKED = 500  # moves of a round that are compared with shapely
N_PAIRS = 100_000
WORKLOAD = Workload(n_streams=100_000, n_rounds=N_ROUNDS + N_WARM + 1, n_queries=10_000, side_m=471.0)


def main() -> None:
    """Print what a move takes in both, and the ratio of the readings a second."""
    boxes, polygons = Areas(2), Areas(2)
    slots = np.arange(WORKLOAD.n_queries, dtype=np.int32)
    lo, hi = WORKLOAD.squares()
    boxes.register(slots, boxes_of(lo, hi))
    rings = stars(WORKLOAD.n_queries, 4 * WORKLOAD.side_m)
    polygons.register(slots, [region_of(ring) for ring in rings])
    ns: dict[str, list[float]] = {"boxes": [], "polygons": []}
    events = dict.fromkeys(ns, 0)
    streams = np.arange(WORKLOAD.n_streams, dtype=np.int32)
    positions = (np.stack((x, y)) for _, x, y in WORKLOAD.rounds())
    for number, (before, after) in enumerate(pairwise(positions)):
        for name, areas in (("boxes", boxes), ("polygons", polygons))[:: 1 if number % 2 else -1]:
            start = time.thread_time_ns()
            moves = areas.moves(streams, before, after)
            elapsed = time.thread_time_ns() - start
            if name == "polygons":
                check(moves, rings, before[:, :N_CHECKED], after[:, :N_CHECKED])
            if number >= N_WARM:
                ns[name].append(elapsed / streams.size)
                events[name] += moves.rows.size
    for name in ns:
        rate = events[name] / len(ns[name]) / streams.size
        megabytes = (boxes if name == "boxes" else polygons).nbytes / 1e6
        print(
            f"{name}: {statistics.median(ns[name]):.0f} ns a reading ({min(ns[name]):.0f} to {max(ns[name]):.0f}), ",
            end="",
        )
        print(f"{rate:.3f} events a reading, {megabytes:.1f} MB")
    print(f"polygons_vs_boxes={statistics.median(ns['boxes']) / statistics.median(ns['polygons']):.2f}")
    worker = in_a_worker({"boxes": boxes_of(lo, hi), "polygons": [region_of(ring) for ring in rings]})
    ratio = worker["boxes"] / worker["polygons"]
    print(
        f"in a worker, from JSON to events: boxes {worker['boxes']:.0f} ns a reading, polygons {worker['polygons']:.0f}"
    )
    print(f"polygons_vs_boxes_worker={ratio:.2f}")
    ours, theirs = exact_tests(rings)
    print(f"exact test of a pair: kernel {ours:.0f} ns, shapely {theirs:.0f} ns, ratio={theirs / ours:.1f}")


def boxes_of(lo: Float64s, hi: Float64s) -> list[Region]:
    """Return the boxes between corners, float64[2, n] each."""
    return [Region(tuple(a), tuple(b)) for a, b in zip(lo.T.tolist(), hi.T.tolist(), strict=True)]


def in_a_worker(regions: dict[str, list[Region]]) -> dict[str, float]:
    """Return the nanoseconds that Python spends on a reading, from its JSON to events and delta; all but Spark."""
    feed = Feed("vehicles", "vehicles", "id", ("x", "y"), event_time="ts")
    monitors = {name: Monitor(Installation({feed.name: feed})) for name in regions}
    for name, monitor in monitors.items():
        monitor.apply([Put(i, RegionQuery(f"q{i}", i + 1, feed.name, one)) for i, one in enumerate(regions[name])])
    decoder = Decoder(feed)
    ns: dict[str, list[float]] = {name: [] for name in regions}
    for number, (event_time, xs, ys) in enumerate(WORKLOAD.rounds()):
        texts = [
            f'{{"id":"v{i}","ts":{event_time},"x":{x},"y":{y}}}'.encode()
            for i, (x, y) in enumerate(zip(xs.tolist(), ys.tolist(), strict=True))
        ]
        values = pa.array(texts, pa.binary())
        record_times = np.full(len(texts), event_time, dtype=np.int64)
        for name in list(regions)[:: 1 if number % 2 else -1]:
            start = time.thread_time_ns()
            frame = pack_readings(decoder.decode(None, values, record_times).readings, 1)[0]
            readings = concat([unpack_readings(frame)])
            advanced = monitors[name].advance(feed.name, readings, Clock(event_time, event_time))
            pack_delta(monitors[name].take_delta())
            (crossings,) = advanced.crossings
            render_crossings(crossings, feed, topic="events")
            if number > N_WARM:
                ns[name].append((time.thread_time_ns() - start) / len(texts))
    return {name: statistics.median(times) for name, times in ns.items()}


def stars(n: int, perimeter: float) -> list[Float64s]:
    """Return ``n`` closed rings of `N_VERTICES` vertices with that perimeter, float64[N_VERTICES + 1, 2] each."""
    rng = np.random.default_rng(SEED)
    angles = np.linspace(0, 2 * np.pi, N_VERTICES + 1)
    waves = [
        rng.uniform(0, 0.3 / k, (n, 1)) * np.sin(k * angles + rng.uniform(0, 2 * np.pi, (n, 1))) for k in (2, 3, 5)
    ]
    radii = 1 + np.sum(waves, axis=0)
    radii[:, -1] = radii[:, 0]
    rings = np.stack((radii * np.cos(angles), radii * np.sin(angles)), axis=2)
    rings[:, -1] = rings[:, 0]
    lengths = np.hypot(*np.moveaxis(np.diff(rings, axis=1), 2, 0)).sum(axis=1)
    rings *= (perimeter / lengths)[:, None, None]
    return list(rings + rng.uniform(0, PLANE_M, (n, 1, 2)))


def region_of(ring: Float64s) -> Region:
    """Return the region of one closed ring."""
    shape = Shape(ShapeKind.POLYGON, ring.astype("<f8").tobytes(), (0, len(ring)))
    return Region(tuple(ring.min(axis=0).tolist()), tuple(np.nextafter(ring.max(axis=0), np.inf).tolist()), shape)


def check(moves: Moves, rings: list[Float64s], before: Float64s, after: Float64s) -> None:
    """Compare the first moves with what shapely says of both ends."""
    tree = shapely.STRtree([shapely.Polygon(ring) for ring in rings])
    was, now = (
        {tuple(pair) for pair in tree.query(shapely.points(ends.T), predicate="within").T.tolist()}
        for ends in (before, after)
    )
    n = np.searchsorted(moves.rows, before.shape[1])
    found = sorted(zip(moves.rows[:n].tolist(), moves.queries[:n].tolist(), moves.signs[:n].tolist(), strict=True))
    assert found == sorted([(*pair, 1) for pair in now - was] + [(*pair, -1) for pair in was - now])


def exact_tests(rings: list[Float64s]) -> tuple[float, float]:
    """Return the nanoseconds of an exact test of a pair: by the kernel, and by shapely with prepared polygons."""
    rng = np.random.default_rng(SEED)
    slots = rng.integers(0, len(rings), N_PAIRS).astype(np.int32)
    boxes = np.array([(*ring.min(axis=0), *ring.max(axis=0)) for ring in rings])[slots]
    values = np.ascontiguousarray((boxes[:, :2] + rng.random((N_PAIRS, 2)) * (boxes[:, 2:] - boxes[:, :2])).T)
    store = ShapeStore()
    store.add(np.arange(len(rings), dtype=np.int32), [shape for ring in rings if (shape := region_of(ring).shape)])
    areas = np.array([shapely.Polygon(ring) for ring in rings])
    shapely.prepare(areas)
    chosen = areas[slots]
    asks: list[Callable[[], np.typing.NDArray[np.bool_]]] = [
        lambda: store.holds(slots, values),
        lambda: shapely.contains_xy(chosen, values[0], values[1]),
    ]
    np.testing.assert_array_equal(asks[0](), asks[1]())
    times = [[_ns(ask) for _ in range(5)] for ask in asks]
    return statistics.median(times[0]) / N_PAIRS, statistics.median(times[1]) / N_PAIRS


def _ns(ask: Callable[[], object]) -> int:
    start = time.thread_time_ns()
    ask()
    return time.thread_time_ns() - start


if __name__ == "__main__":
    main()
