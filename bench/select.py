"""Claims about selections: the workload of the paper on duality of data and queries, its rivals, and the race.

Paper: Lim et al., *Continuous Query Processing in Data Streams Using Duality of Data and Queries*, section 7. Ours: one
core, compiled rivals in main memory, answers written out as rows and queries by all. Batches are whole for the
batch processing; the rivals answer the first values of it, as what a value costs them does not depend on the others.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from bench.baselines.column_scan import ColumnScan
from bench.baselines.ibs import Ibs
from bench.measure import Times, held_by, registered
from bmq.index.base import MatchIndex, Moves
from bmq.index.match.select_index import SelectIndex
from bmq.records import Float64s, Int64s

SEED = 20060627
BATCH, IMMEDIATE, IBS, SCAN = "SJ-Batch", "SJ-Immediate", "IBS", "scan by column"
N_CHECKED = 50  # values of each round that are compared with the definition, too


KINDS: Mapping[str, Callable[[int], MatchIndex]] = {
    BATCH: SelectIndex,
    IMMEDIATE: SelectIndex,
    IBS: Ibs,
    SCAN: ColumnScan,
}


@dataclass(frozen=True, slots=True)
class Selections:
    """The queries and values of section 7.1: intervals open to the left, to the right, or closed, on random attributes.

    Attributes
    ----------
    n_attributes : the paper's N_attr.
    n_conditions : how many of them have a condition in a query; R_pred is this by N_attr.
    skew : the share of values, in each attribute, that lie in one tenth of the domain; None: evenly.
    """

    n_attributes: int
    n_conditions: int
    skew: float | None = None

    def regions(self, n_queries: int, seed: int) -> tuple[Float64s, Float64s]:
        """Return lower and upper ends, float64[d, m] each: half-open, as everywhere here."""
        rng = np.random.default_rng(seed)
        shape = (self.n_attributes, n_queries)
        lo, hi = np.sort(rng.random((2, *shape)), axis=0)
        constants = rng.random(shape)
        # What the paper leaves to chance, whether an end is in, is < or <= on random numbers: it changes no answer.
        kind = rng.integers(0, 3, shape)
        lo = np.choose(kind, [np.full(shape, -np.inf), constants, lo])
        hi = np.choose(kind, [constants, np.full(shape, np.inf), np.nextafter(hi, np.inf)])
        has_none = np.argsort(rng.random(shape), axis=0) >= self.n_conditions
        return np.where(has_none, -np.inf, lo), np.where(has_none, np.inf, hi)

    def values(self, n_values: int, seed: int) -> Float64s:
        """Return values in [0, 1), float64[d, n]."""
        rng = np.random.default_rng(seed)
        values = rng.random((self.n_attributes, n_values))
        if self.skew is not None:
            crowded = rng.random(n_values) < self.skew
            values[:, crowded] = 0.45 + 0.1 * values[:, crowded]
        return values


@dataclass(frozen=True, slots=True)
class Length:
    """How long a race is: timed rounds, values of a batch, and how many of them the others answer."""

    n_rounds: int
    n_batch: int
    n_others: int


def one_by_one(index: MatchIndex) -> Callable[[Float64s], Moves]:
    """Return a question that asks ``index`` about each value in a call of its own."""

    def stab(values: Float64s) -> Moves:
        parts = [index.stab(values[:, i : i + 1]) for i in range(values.shape[1])]
        rows = np.repeat(np.arange(len(parts), dtype=np.int32), [part.rows.size for part in parts])
        queries = np.concatenate([part.queries for part in parts])
        return Moves(rows, queries, np.ones(rows.size, dtype=np.int8), sum(part.visits for part in parts))

    return stab


def raced(selections: Selections, n_queries: int, length: Length, names: tuple[str, ...]) -> dict[str, Times]:
    """Return what each contestant took a value, by turns, after a round that is not timed.

    Raises
    ------
    AssertionError
        One differs from the first, or the first from the definition.
    """
    regions = selections.regions(n_queries, SEED)
    made: dict[Callable[[int], MatchIndex], MatchIndex] = {}
    asks: dict[str, Callable[[Float64s], Moves]] = {}
    for name in names:
        kind = KINDS[name]
        if kind not in made:
            made[kind] = kind(selections.n_attributes)
            registered(made[kind], regions)
        asks[name] = one_by_one(made[kind]) if name == IMMEDIATE else made[kind].stab
    batches = (selections.values(length.n_batch, SEED + 1 + number) for number in range(length.n_rounds + 1))
    return race(asks, batches, regions, length.n_others)


def race(
    asks: Mapping[str, Callable[[Float64s], Moves]],
    batches: Iterator[Float64s],
    regions: tuple[Float64s, Float64s],
    n_others: int,
) -> dict[str, Times]:
    """Return what each of ``asks`` took a value; all but those called `BATCH...` get the first ``n_others`` of a batch.

    Raises
    ------
    AssertionError
        As for ``raced``.
    """
    times = {name: Times() for name in asks}
    names = list(asks)
    for number, batch in enumerate(batches):
        found: dict[str, Int64s] = {}
        first = number % len(names)
        for name in names[first:] + names[:first]:
            values = batch if name.startswith(BATCH) else batch[:, :n_others].copy()
            start = time.thread_time_ns()
            moves = asks[name](values)
            elapsed = time.thread_time_ns() - start
            found[name] = _keys(moves, n_others)
            if number:
                times[name].ns.append(elapsed / values.shape[1])
                times[name].n_found += moves.rows.size
                times[name].n_visits += moves.visits
                times[name].n_ops += values.shape[1]
        for name in names:
            np.testing.assert_array_equal(found[name], found[names[0]], err_msg=f"{name} differs from {names[0]}")
        inside = np.argwhere(held_by(regions, batch[:, :N_CHECKED]))
        few = found[names[0]][: np.searchsorted(found[names[0]], min(N_CHECKED, n_others) << 32)]
        defined = inside[inside[:, 0] < n_others]
        np.testing.assert_array_equal(few, defined[:, 0] << 32 | defined[:, 1])
    return times


def _keys(moves: Moves, n_values: int) -> Int64s:
    """Return row and query of the first values as one number each, ascending."""
    n = np.searchsorted(moves.rows, n_values)
    keys: Int64s = moves.rows[:n].astype(np.int64) << 32 | moves.queries[:n]
    keys.sort()
    return keys


def ratio(times: Mapping[str, Times], slow: str, fast: str) -> float:
    """Return how many times as long as ``fast`` the median round of ``slow`` took."""
    return times[slow].spread.median / times[fast].spread.median


FOUR = Selections(4, 4)
_LENGTH = Length(5, 10_000, 300)


def batch_against_ibs() -> float:
    """Return the time of IBS by that of batches of 10,000, over 100,000 queries on all of four attributes."""
    return ratio(raced(FOUR, 100_000, _LENGTH, (BATCH, IBS)), IBS, BATCH)


def batch_against_ibs_of_eight() -> float:
    """Return the same on all of eight attributes: the paper's best."""
    return ratio(raced(Selections(8, 8), 100_000, _LENGTH, (BATCH, IBS)), IBS, BATCH)


def batch_against_scan() -> float:
    """Return the time of the scan by column by that of batches of 10,000, as ``batch_against_ibs``."""
    return ratio(raced(FOUR, 100_000, _LENGTH, (BATCH, SCAN)), SCAN, BATCH)


def immediate_against_ibs() -> float:
    """Return the time of IBS by that of values that come one by one, as ``batch_against_ibs``."""
    return ratio(raced(FOUR, 100_000, Length(5, 300, 300), (IMMEDIATE, IBS)), IBS, IMMEDIATE)
