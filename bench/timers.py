"""What pending crossings cost: the time in which a million fire at once, and their bytes.

Claims: a million that are due at the same moment fire in less than 2 s, be they stays of transition queries or
memberships that are confirmed; one that is pending for a transition query of two dimensions takes at most 64 bytes, its
part of the hash table included, whenever one looks. The paper (BMQ-Processor, section 6.4) counts accesses; its
simulated million of vehicles makes 21 crossings a second and garage. Ours: 1,000 queries and 1,000 streams, each
combination once, in no order. Processor seconds of one thread, median of the rounds; every event is compared with what
it must be before a number is returned. Run `python -m bench.timers`: half a minute.
"""

import statistics
import time

import numpy as np

from bmq.engines.event_columns import Events
from bmq.engines.tracking.trackings import AT_READING, IN, TrackingItems, Trackings
from bmq.records import NEVER, Ids, Int64s, Kind, Pattern, Region, RegionQuery, Sign
from bmq.records.column_records import take

SEED = 20060509
N_QUERIES = 1_000
N_STREAMS = 1_000
N_ROUNDS = 3
MINUTES_3_MS = 180_000
SPREAD_MS = 10_000  # over which the crossings come

# Growth is seen at every size from here on; below, the blocks of an empty table count.
FIRST_SIZE = 50_000
LAST_SIZE = 1_000_000
STEP = 1_000

SQUARE = Region((0.0, 0.0), (1.0, 1.0))
STAY = RegionQuery(
    "q",
    1,
    "f",
    SQUARE,
    kind=Kind.TRANSITION,
    pattern=Pattern.IN_NOT_OUT,
    within_ms=MINUTES_3_MS,
)
CONFIRMED = RegionQuery("q", 1, "f", SQUARE, stay_for_ms=MINUTES_3_MS)


def measure(n_queries: int = N_QUERIES, n_streams: int = N_STREAMS, n_rounds: int = N_ROUNDS) -> float:
    """Return the seconds in which all pairs fire at once, of the slower kind of query."""
    return max(seconds_to_fire(query, n_queries, n_streams, n_rounds) for query in (STAY, CONFIRMED))


def seconds_to_fire(query: RegionQuery, n_queries: int, n_streams: int, n_rounds: int) -> float:
    """Return the median of the seconds in which a crossing of each pair fires.

    Raises
    ------
    AssertionError
        Some event is not what it must be.
    """
    rng = np.random.default_rng(SEED)
    pairs = _registered(query, n_queries)
    seconds = []
    for number in range(n_rounds + 1):
        items = _entered(rng, rng.permutation(n_queries * n_streams), n_streams, number)
        pairs.run(items, settled=int(items.moments.max()))
        _take(pairs)
        assert pairs.n_pending == n_queries * n_streams
        settled = int(items.moments.max()) + MINUTES_3_MS + 1
        start = time.thread_time()
        emitted = pairs.run(take(items, slice(0)), settled)
        elapsed = time.thread_time() - start
        _compare(query, items, emitted.events)
        assert pairs.n_pending == 0
        for slot in range(n_queries):
            pairs.forget(slot)
        if number:  # the first round compiles
            seconds.append(elapsed)
    return statistics.median(seconds)


def bytes_a_crossing() -> tuple[float, float, float]:
    """Return the least, the mean and the most bytes a crossing, over all sizes of a table that fills."""
    rng = np.random.default_rng(SEED)
    pairs = _registered(STAY, N_QUERIES)
    numbers = rng.permutation(N_QUERIES * N_STREAMS)
    seen = []
    for begin in range(0, LAST_SIZE, STEP):
        pairs.run(_entered(rng, numbers[begin : begin + STEP], N_STREAMS, 0), settled=0)
        _take(pairs)
        if pairs.n_pending >= FIRST_SIZE:
            seen.append(pairs.nbytes / pairs.n_pending)
    assert pairs.n_pending == LAST_SIZE
    return min(seen), statistics.mean(seen), max(seen)


def most_bytes_a_crossing() -> float:
    """Return the most bytes of a pending crossing of a transition query."""
    return bytes_a_crossing()[2]


def main() -> None:
    """Print two lines."""
    print(f"timers_1m_seconds={measure():.2f}")
    least, mean, most = bytes_a_crossing()
    print(f"bytes_a_pending_crossing least={least:.1f} mean={mean:.1f} most={most:.1f}")


def _registered(query: RegionQuery, n_queries: int) -> Trackings:
    pairs = Trackings(2)
    for slot in range(n_queries):
        pairs.set_options(slot, query)
    return pairs


def _entered(rng: np.random.Generator, numbers: Int64s, n_streams: int, round_: int) -> TrackingItems:
    """Return a crossing into each of the pairs ``numbers``."""
    n = numbers.size
    times = np.sort(rng.integers(0, SPREAD_MS, n)) + round_ * 10 * MINUTES_3_MS
    zeros = np.zeros(n, dtype=np.int32)
    return TrackingItems(
        queries=(numbers // n_streams).astype(np.int32),
        streams=(numbers % n_streams).astype(np.int32),
        moments=times,
        classes=np.full(n, AT_READING, dtype=np.int8),
        actions=np.full(n, IN, dtype=np.int8),
        reasons=np.zeros(n, dtype=np.int8),
        event_times=times,
        ordinals=zeros,
        rows=zeros,
        passes=zeros,
        values=rng.random((2, n)),
    )


def _compare(query: RegionQuery, items: TrackingItems, emitted: Events) -> None:
    """Each pair has one event, with the time and the value of its crossing."""
    expected = np.lexsort((items.streams, items.queries))
    found = np.lexsort((emitted.streams, emitted.queries))
    dues = items.moments[expected] + MINUTES_3_MS
    is_stay = query.pattern is not None
    np.testing.assert_array_equal(emitted.queries[found], items.queries[expected])
    np.testing.assert_array_equal(emitted.streams[found], items.streams[expected])
    np.testing.assert_array_equal(emitted.moments[found], dues)
    np.testing.assert_array_equal(emitted.event_times[found], dues if is_stay else items.moments[expected])
    np.testing.assert_array_equal(emitted.began[found], items.moments[expected] if is_stay else NEVER)
    np.testing.assert_array_equal(emitted.confirmed_times[found], NEVER if is_stay else dues)
    np.testing.assert_array_equal(emitted.signs, Sign.NONE if is_stay else Sign.ENTERED)
    np.testing.assert_array_equal(emitted.values[:, found], items.values[:, expected])


def _take(pairs: Trackings) -> None:
    """Take what changed, as a batch does at its end."""
    no_ids = Ids(np.zeros(1, dtype=np.int64), np.empty(0, dtype=np.uint8), np.empty(0, dtype=np.uint64))
    pairs.take_touched(str, lambda slots: no_ids)


if __name__ == "__main__":
    main()
