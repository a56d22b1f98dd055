"""What live registration costs the readings beside it.

Claim: over a million standing queries, 1,000 registrations for each second of readings lose less than a tenth of
the throughput. Papers: BMQ-Processor registers queries at any time, but measures no reading beside. Ours: 60 km,
squares of 50 m, steps of 330 m; two border grids in one process take the same moves in turns, and one of them gets
new queries between. Processor seconds of one thread, median of the rounds' ratios, and the share of the rebuild
that is due when the room for new queries is used up. Answers are compared before a number is returned. Run
`python -m bench.registration`: half a minute.
"""

import time

import numpy as np

from bench.baselines.one_structure import BorderGrid
from bench.border_indexes import CITY, SEED, Setup
from bmq.index.base import Moves
from bmq.index.border.border_grid import ROOM
from bmq.records import Float64s, Int32s

N_QUERIES = 1_000_000
RATE = 1_000  # registrations for each second of readings
N_ROUNDS = 30


def measure(setup: Setup | None = None, *, rate: int = RATE, n_rounds: int = N_ROUNDS) -> float:
    """Return the share of throughput that ``rate`` registrations a second take from the readings."""
    setup = setup or CITY(n_queries=N_QUERIES, side=50.0)
    rng = np.random.default_rng(SEED)
    lo, hi = setup.regions(rng, setup.n_queries)
    slots = np.arange(setup.n_queries, dtype=np.int32)
    streams = np.arange(setup.n_streams, dtype=np.int32)
    quiet, busy = BorderGrid(setup.n_dims), BorderGrid(setup.n_dims)
    after = setup.positions(rng, setup.n_streams)
    for index in (quiet, busy):
        index.register(slots, lo, hi)
        start = time.thread_time()
        index.moves(streams[:0], after[:, :0], after[:, :0])
        build_seconds = time.thread_time() - start
    before, after = after, setup.next_positions(rng, after)
    quiet_seconds = _moved(quiet, streams, before, after)[0]
    ratios, n_registered = [], 0
    for number in range(n_rounds):
        before, after = after, setup.next_positions(rng, after)
        n_new = max(1, round(rate * quiet_seconds))
        new_slots = np.arange(n_new, dtype=np.int32) + np.int32(setup.n_queries + n_registered)
        new_lo, new_hi = setup.regions(rng, n_new)
        n_registered += n_new
        if number % 2:
            quiet_seconds, expected = _moved(quiet, streams, before, after)
        start = time.thread_time()
        busy.register(new_slots, new_lo, new_hi)
        busy_seconds, found = _moved(busy, streams, before, after, since=start)
        if not number % 2:
            quiet_seconds, expected = _moved(quiet, streams, before, after)
        np.testing.assert_array_equal(_sorted(found, below=setup.n_queries), _sorted(expected))
        ratios.append(busy_seconds / quiet_seconds)
    # Each second brings this share of the registrations after which everything is built anew.
    rebuild = build_seconds * rate / (ROOM * setup.n_queries)
    # The new queries are there: both indexes agree when the quiet one gets them, too.
    quiet.register(*_registered(busy, setup.n_queries))
    np.testing.assert_array_equal(
        _sorted(_moved(quiet, streams, before, after)[1]), _sorted(_moved(busy, streams, before, after)[1])
    )
    return 1 - 1 / (float(np.median(ratios)) + rebuild)


def lost_percent() -> float:
    """Return the share of throughput that is lost over a million queries, in percent: half a minute."""
    measure(CITY(n_queries=100, side=50.0), n_rounds=2)  # compiles the kernels
    return 100.0 * measure()


def main() -> None:
    """Print one line."""
    print(f"registration lost_percent={lost_percent():.1f} rate={RATE}/s queries={N_QUERIES}")


def _moved(
    index: BorderGrid, streams: Int32s, before: Float64s, after: Float64s, since: float | None = None
) -> tuple[float, Moves]:
    start = time.thread_time() if since is None else since
    moves = index.moves(streams, before, after)
    return time.thread_time() - start, moves


def _sorted(moves: Moves, below: int | None = None) -> Int32s:
    """Return (row, query, sign) of each crossing, sorted, of the queries ``below`` a slot."""
    found = np.stack((moves.rows, moves.queries, moves.signs), dtype=np.int32)
    if below is not None:
        found = found[:, moves.queries < below]
    return np.asarray(found[:, np.lexsort(found)])


def _registered(index: BorderGrid, first_slot: int) -> tuple[Int32s, Float64s, Float64s]:
    """Return slots and borders of the queries from ``first_slot`` on."""
    tables = [layer.table for layer in index._layers]
    slots = np.concatenate([table.slots for table in tables])
    regions = np.concatenate([table.regions for table in tables])
    lo, hi = regions[slots >= first_slot].T
    return slots[slots >= first_slot], lo, hi


if __name__ == "__main__":
    main()
