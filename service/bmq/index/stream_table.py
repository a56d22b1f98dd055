"""The stream table of one feed and shard: stream id -> slot, last reading, order among readings of equal event time.

Knows streams and readings; it must not know queries. The paper's table maps a stream to its RS node. Here the table
keeps the value, as the n-D BMQ does, and the position hint belongs to the index, which may be rebuilt at any time.
"""

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from bmq.kernels.tables import stream_rows as kernel
from bmq.kernels.tables.hashing import hash_ids
from bmq.records import NEVER, Bools, Bytes, Float64s, Ids, Int32s, Int64s, Readings, StreamRows

T = TypeVar("T", bound=np.generic)

INITIAL_STREAMS = 1024  # streams; doubles as needed, so a smaller number only costs a few growths


@dataclass(frozen=True, slots=True)
class Chained:
    """Readings in the order in which they apply, each with the reading that it followed.

    Attributes
    ----------
    rows : int64[n], the position of the reading in the input.
    slots : int32[n], stream slots.
    event_times : int64[n], epoch ms.
    moved : bool[n], whether the stream was known, so that the reading ends a move.
    returned : bool[n], whether the stream had a reading and expired after it. None: streams of this table do not
        expire.
    values, previous_values : float64[d, n], the latter valid where moved or returned.
    previous_times : int64[n], epoch ms, valid where moved or returned.
    lags_before : int64[n], ms
        The lag of the stream before these readings. None: no stream had a lag.
    ordinals_before : int32[n]
        The ordinal of the last reading of the stream before these readings. None: as ``lags_before``.
    ordinals : int32[n]
        How many readings of the stream came before at the same event time. If the event time may be before an expiry of
        its stream, the number is unknown and the reading gets a number of its own.
    n_late : how many readings were older than their stream's last one and changed nothing.
    """

    rows: Int64s
    slots: Int32s
    event_times: Int64s
    moved: Bools
    returned: Bools | None
    values: Float64s
    previous_values: Float64s
    previous_times: Int64s
    ordinals: Int32s
    n_late: int
    lags_before: Int64s | None = None
    ordinals_before: Int32s | None = None


class StreamTable:
    """The streams of one feed and shard, by slot 0..n_slots - 1.

    A stream gets a slot at its first reading, or earlier if a query names the stream; it keeps the slot for ever.
    Memory: 8 * d + 45 bytes a stream, its id, and 8 to 16 bytes of hash table; 8 more while some stream has a lag.

    Parameters
    ----------
    n_dims : how many numbers are kept of a reading.
    ttl_ms : a stream becomes unknown after a silence longer than this; None: never.
    """

    def __init__(self, n_dims: int, ttl_ms: int | None = None) -> None:
        self.n_dims = n_dims
        self._ttl = np.iinfo(np.int64).max if ttl_ms is None else ttl_ms
        self.n_slots = 0
        self.any_seen = False  # whether any stream has had a reading
        self.n_recounted = 0  # how many readings came that may be older than an expiry of their stream; only grows
        self._table: Int32s = np.full(4 * INITIAL_STREAMS, -1, dtype=np.int32)
        self._hashes = np.empty(INITIAL_STREAMS, dtype=np.uint64)
        self._id_starts: Int64s = np.zeros(INITIAL_STREAMS + 1, dtype=np.int64)
        self._arena: Bytes = np.empty(16 * INITIAL_STREAMS, dtype=np.uint8)
        self._last_times: Int64s = np.full(INITIAL_STREAMS, NEVER, dtype=np.int64)
        self._ordinals: Int32s = np.zeros(INITIAL_STREAMS, dtype=np.int32)
        self._values: Float64s = np.zeros((n_dims, INITIAL_STREAMS))
        self._lags: Int64s | None = None  # by slot, as long as some stream has a lag
        self._scratch: Int64s = np.full(INITIAL_STREAMS, NEVER, dtype=np.int64)
        self._touched: Bools = np.zeros(INITIAL_STREAMS, dtype=np.bool_)
        self._touched_slots: Int32s = np.empty(INITIAL_STREAMS, dtype=np.int32)
        self._n_touched = 0

    @property
    def last_times(self) -> Int64s:
        """Event time of each stream's last reading, int64[n_slots]; ``NEVER`` if there was none."""
        return self._last_times[: self.n_slots]

    @property
    def ordinals(self) -> Int32s:
        """How many readings came before the last one at its event time, int32[n_slots]."""
        return self._ordinals[: self.n_slots]

    @property
    def values(self) -> Float64s:
        """Each stream's last value, float64[d, n_slots]; zero if there was no reading."""
        return self._values[:, : self.n_slots]

    @property
    def lags(self) -> Int64s | None:
        """The lag of each stream's last reading, ms, int64[n_slots]; None: no stream has a lag."""
        return None if self._lags is None else self._lags[: self.n_slots]

    @property
    def n_lagging(self) -> int:
        """How many streams have a lag."""
        return 0 if self._lags is None else int(np.count_nonzero(self._lags))

    @property
    def silent_since(self) -> Int64s:
        """The settled time from which the silence of each stream counts, int64[n_slots]: last reading and its lag.

        ``NEVER`` if there was no reading.
        """
        return self.silent_since_of(slice(self.n_slots))

    def silent_since_of(self, slots: Int32s | slice) -> Int64s:
        """Return ``silent_since`` of some streams."""
        times = self._last_times[slots]
        return times if self._lags is None else times + self._lags[slots]

    @property
    def n_seen(self) -> int:
        """How many streams have had a reading and have not been forgotten since."""
        return int(np.count_nonzero(self.last_times != NEVER))

    def slots_of(self, ids: Ids) -> Int32s:
        """Return the slot of each id, int32[n]; new ids get new slots."""
        slots = np.empty(len(ids), dtype=np.int32)
        done = 0
        while True:
            done, self.n_slots = kernel.find_or_add(
                ids.starts,
                ids.bytes,
                ids.hashes,
                done,
                self._table,
                self._hashes,
                self._id_starts,
                self._arena,
                self.n_slots,
                slots,
            )
            if done == len(ids):
                return slots
            self._grow(int(ids.starts[done + 1] - ids.starts[done]))

    def ids_of(self, slots: Int32s) -> Ids:
        """Return the ids of ``slots``, in that order."""
        starts, data = kernel.gather_ids(slots, self._id_starts, self._arena)
        return Ids(starts, data, self._hashes[slots])

    def text_of(self, slot: int) -> str:
        """Return the id in ``slot``."""
        return self._arena[self._id_starts[slot] : self._id_starts[slot + 1]].tobytes().decode()

    def apply(self, readings: Readings, settled: int = NEVER) -> Chained:
        """Apply readings given in (partition, offset) order, and return the reading that each one followed.

        Within a stream, readings apply in the order of (event time, partition, offset). A reading older than the last
        applied reading of its stream is late and changes nothing; one at the same event time applies
        (docs/semantics.md, order and lateness).

        Parameters
        ----------
        readings : Readings
        settled : int, epoch ms
            Streams without a lag that were silent up to this time have been forgotten before. NEVER: none was.
        """
        self.any_seen |= len(readings) > 0
        slots = self.slots_of(readings.ids)
        times, values = readings.event_times, readings.values
        rows = None
        if not kernel.in_order(slots, times, self._scratch):
            rows = np.argsort(times, kind="stable")
            slots, times, values = slots[rows], times[rows], np.ascontiguousarray(values[:, rows])
        n = slots.size
        kinds = np.empty(n, dtype=np.uint8)
        previous_times = np.empty(n, dtype=np.int64)
        previous_values = np.empty((self.n_dims, n))
        ordinals = np.empty(n, dtype=np.int32)
        lags_before = None if self._lags is None else self._lags[slots]
        ordinals_before = None if self._lags is None else self._ordinals[slots]
        self._n_touched, self.n_recounted = kernel.chain(
            slots,
            times,
            values,
            self._last_times,
            self._ordinals,
            self._values,
            self._ttl,
            settled - self._ttl if self.can_expire and settled != NEVER else NEVER,
            self.n_recounted,
            self._touched,
            self._touched_slots,
            self._n_touched,
            kinds,
            previous_times,
            previous_values,
            ordinals,
        )
        if rows is None:
            rows = np.arange(n, dtype=np.int64)
        applied = kinds != kernel.LATE
        n_late = n - int(np.count_nonzero(applied))
        if n_late:
            rows, slots, kinds, ordinals = rows[applied], slots[applied], kinds[applied], ordinals[applied]
            values, times, previous_times = values[:, applied], times[applied], previous_times[applied]
            previous_values = previous_values[:, applied]
            if lags_before is not None and ordinals_before is not None:
                lags_before, ordinals_before = lags_before[applied], ordinals_before[applied]
        self._set_lags(slots, None if readings.lags is None else readings.lags[rows])
        returned = kinds == kernel.RETURNED if self.can_expire else None
        return Chained(
            rows,
            slots,
            times,
            kinds == kernel.MOVED,
            returned,
            values,
            previous_values,
            previous_times,
            ordinals,
            n_late,
            lags_before,
            ordinals_before,
        )

    def _set_lags(self, slots: Int32s, lags: Int64s | None) -> None:
        """Set the lags of streams; of a slot that is there several times the last one counts."""
        if self._lags is None and (lags is None or not lags.any()):
            return
        if self._lags is None:
            self._lags = np.zeros(self._hashes.size, dtype=np.int64)
        self._lags[slots] = 0 if lags is None else lags
        if not self._lags.any():
            self._lags = None

    @property
    def can_expire(self) -> bool:
        """Whether a stream that is silent becomes unknown."""
        return self._ttl != np.iinfo(np.int64).max

    def silent_slots(self, settled: int) -> Int32s:
        """Return the streams that have become unknown by ``settled`` (epoch ms), ascending: int32[k].

        O(streams), one comparison each.
        """
        times = self.silent_since
        if not self.can_expire or settled == NEVER:
            return np.empty(0, dtype=np.int32)
        # Compared with a limit for the time: NEVER is below every limit, but a difference with NEVER overflows.
        return np.flatnonzero((times < settled - self._ttl) & (times != NEVER)).astype(np.int32)

    def forget(self, slots: Int32s) -> None:
        """Make streams unknown again; they keep their slots."""
        self._last_times[slots] = NEVER
        self._ordinals[slots] = 0
        self._set_lags(slots, None)
        new = slots[~self._touched[slots]]
        self._touched[new] = True
        self._touched_slots[self._n_touched : self._n_touched + new.size] = new
        self._n_touched += new.size

    def take_touched(self) -> StreamRows:
        """Return the present rows of the streams that have changed since the last call, and clear the touched set."""
        slots = self._touched_slots[: self._n_touched].copy()
        self._touched[slots] = False
        self._n_touched = 0
        return self.rows_of(slots)

    def rows_of(self, slots: Int32s) -> StreamRows:
        """Return the rows of the table in ``slots``."""
        lags = None if self._lags is None else self._lags[slots]
        return StreamRows(
            self.ids_of(slots),
            self._last_times[slots],
            self._ordinals[slots],
            self._values[:, slots],
            lags=lags if lags is not None and lags.any() else None,
        )

    def seen_slots(self) -> Int32s:
        """Return the slots of the streams that have a reading and are not forgotten, ascending: int32[k]."""
        return np.flatnonzero(self.last_times != NEVER).astype(np.int32)

    def put_rows(self, rows: StreamRows) -> None:
        """Set streams to the rows that another table's ``take_touched`` returned."""
        self.any_seen |= len(rows.ids) > 0
        slots = self.slots_of(rows.ids)
        self._last_times[slots] = rows.event_times
        self._ordinals[slots] = rows.ordinals
        self._values[:, slots] = rows.values
        self._set_lags(slots, rows.lags)

    def _grow(self, id_length: int) -> None:
        """Make room for one more id, of ``id_length`` bytes."""
        capacity = self._hashes.size
        if self.n_slots == capacity:
            self._hashes = _enlarged(self._hashes, 2 * capacity, 0)
            self._id_starts = _enlarged(self._id_starts, 2 * capacity + 1, 0)
            self._last_times = _enlarged(self._last_times, 2 * capacity, NEVER)
            self._ordinals = _enlarged(self._ordinals, 2 * capacity, 0)
            self._scratch = _enlarged(self._scratch, 2 * capacity, NEVER)
            self._touched = _enlarged(self._touched, 2 * capacity, False)
            self._touched_slots = _enlarged(self._touched_slots, 2 * capacity, 0)
            if self._lags is not None:
                self._lags = _enlarged(self._lags, 2 * capacity, 0)
            values = np.zeros((self.n_dims, 2 * capacity))
            values[:, :capacity] = self._values
            self._values = values
        if 2 * (self.n_slots + 1) > self._table.size:
            self._table = np.full(2 * self._table.size, -1, dtype=np.int32)
            kernel.rehash(self._hashes, self.n_slots, self._table)
        used = int(self._id_starts[self.n_slots])
        if used + id_length > self._arena.size:
            self._arena = _enlarged(self._arena, max(2 * self._arena.size, used + id_length), 0)

    def _check(self) -> None:
        """Assert every invariant of the table; for tests."""
        # Every id is found in its own slot, so no two slots have the same id.
        everything = np.arange(self.n_slots, dtype=np.int32)
        ids = self.ids_of(everything)
        assert np.array_equal(hash_ids(ids.starts, ids.bytes), ids.hashes)
        assert np.array_equal(self.slots_of(ids), everything)
        assert len({ids.text(i) for i in range(len(ids))}) == self.n_slots
        # The hash table is at most half full, and has each slot once.
        assert 2 * self.n_slots <= self._table.size
        assert np.array_equal(np.sort(self._table[self._table >= 0]), everything)
        # An unknown stream has no lag, and no lag is below 0.
        if self.lags is not None:
            assert (self.lags >= 0).all()
            assert not self.lags[self.last_times == NEVER].any()
        # Scratch is clean between calls, and the list of touched slots equals the set of them.
        assert (self._scratch == NEVER).all()
        assert set(self._touched_slots[: self._n_touched]) == set(np.flatnonzero(self._touched))


def _enlarged(array: npt.NDArray[T], size: int, fill: int) -> npt.NDArray[T]:
    """Return a copy of ``array`` of length ``size``, with ``fill`` behind its entries."""
    larger = np.full(size, fill, dtype=array.dtype)
    larger[: array.size] = array
    return larger
