"""The inner loops of the stream table: find streams by id, apply their readings. Arrays in, numbers out.

An open-addressing hash table maps ids to slots. It compares the ids themselves, because two ids may have the same hash:

    hash & mask ──► table[h] = slot ──► slot_hashes[slot], arena[id_starts[slot]:id_starts[slot + 1]]
                    -1: free, else try h + 1

Knows ids, slots and readings. It must not know queries or regions.
"""

import numpy as np
from numba import njit

from bmq.records import NEVER, Bools, Bytes, Float64s, Int32s, Int64s, UInt64s

LATE, FIRST, MOVED, RETURNED = 0, 1, 2, 3

# An ordinal from here on belongs to a reading that may be older than an expiry of its stream, and counts such readings
# of the whole table. Nothing is kept of an expired stream, so it is unknown how many readings it had at that time. A
# stream that is known counts its readings itself, so only its first reading, and those that follow a counted one, are
# in doubt. No stream ever has so many readings at one event time, so these ordinals never collide with ordinary ones.
RECOUNTED = 1 << 30


@njit(cache=True)
def _same_id(starts: Int64s, data: Bytes, i: int, id_starts: Int64s, arena: Bytes, slot: int) -> bool:
    """Return whether id ``i`` of a batch is the id in ``slot``."""
    begin, length = starts[i], starts[i + 1] - starts[i]
    at = id_starts[slot]
    if id_starts[slot + 1] - at != length:
        return False
    for j in range(length):  # noqa: SIM110 - numba has no generators here
        if data[begin + j] != arena[at + j]:
            return False
    return True


@njit(cache=True)
def find_or_add(
    starts: Int64s,
    data: Bytes,
    hashes: UInt64s,
    first: int,
    table: Int32s,
    slot_hashes: UInt64s,
    id_starts: Int64s,
    arena: Bytes,
    n_slots: int,
    slots: Int32s,
) -> tuple[int, int]:
    """Write the slots of the ids from ``first`` on, adding new ids as long as there is room.

    Parameters
    ----------
    starts, data, hashes : int64[n + 1], uint8[], uint64[n]
        The ids, as in ``records.Ids``.
    first : int
        The id to continue with after a call that ran out of room; 0 in the first call.
    table : int32[a power of two]
        The hash table, at most half full; -1 where free. Written.
    slot_hashes, id_starts, arena : uint64[capacity], int64[capacity + 1], uint8[]
        The known ids by slot; ``id_starts[n_slots]`` is how many bytes of ``arena`` are used. Written.
    n_slots : int
        How many ids are known.
    slots : int32[n]
        Written: the slot of each id.

    Returns
    -------
    tuple of int
        (the number of the first id not done, or n; the new ``n_slots``). If the first is less than n, the caller
        enlarges the arrays and calls again.

    Notes
    -----
    Raises nothing. Expected O(1) comparisons an id. No allocation.
    """
    n = starts.size - 1
    mask = table.size - 1
    for i in range(first, n):
        h = np.int64(hashes[i] & np.uint64(mask))
        slot = table[h]
        while slot >= 0:
            if slot_hashes[slot] == hashes[i] and _same_id(starts, data, i, id_starts, arena, slot):
                break
            h = (h + 1) & mask
            slot = table[h]
        if slot < 0:
            length = starts[i + 1] - starts[i]
            at = id_starts[n_slots]
            if n_slots == slot_hashes.size or 2 * (n_slots + 1) > table.size or at + length > arena.size:
                return i, n_slots
            slot = n_slots
            table[h] = slot
            slot_hashes[slot] = hashes[i]
            for j in range(length):
                arena[at + j] = data[starts[i] + j]
            id_starts[slot + 1] = at + length
            n_slots += 1
        slots[i] = slot
    return n, n_slots


@njit(cache=True)
def rehash(slot_hashes: UInt64s, n_slots: int, table: Int32s) -> None:
    """Write the known slots to an empty ``table`` (int32, all -1, at least twice ``n_slots`` long)."""
    mask = table.size - 1
    for slot in range(n_slots):
        h = np.int64(slot_hashes[slot] & np.uint64(mask))
        while table[h] >= 0:
            h = (h + 1) & mask
        table[h] = slot


@njit(cache=True)
def in_order(slots: Int32s, event_times: Int64s, latest: Int64s) -> bool:
    """Return whether the readings of each stream are in ascending order of event time.

    Parameters
    ----------
    slots, event_times : int32[n], int64[n]
        The readings, ascending by (partition, offset).
    latest : int64[n_slots]
        Scratch, filled with ``NEVER``; restored before the return.

    Notes
    -----
    Raises nothing. Two passes. A sort of the same readings takes ten times as long, and almost every batch is in order
    already, because all readings of a stream are in one partition.
    """
    ordered = True
    done = slots.size
    for i in range(slots.size):
        slot = slots[i]
        if event_times[i] < latest[slot]:
            ordered = False
            done = i
            break
        latest[slot] = event_times[i]
    for i in range(done):
        latest[slots[i]] = NEVER
    return ordered


@njit(cache=True)
def chain(
    slots: Int32s,
    event_times: Int64s,
    values: Float64s,
    last_times: Int64s,
    ordinals: Int32s,
    last_values: Float64s,
    ttl: int,
    expired: int,
    n_recounted: int,
    touched: Bools,
    touched_slots: Int32s,
    n_touched: int,
    kinds: Bytes,
    previous_times: Int64s,
    previous_values: Float64s,
    reading_ordinals: Int32s,
) -> tuple[int, int]:
    """Apply readings one after the other to the stream table, and write which reading each one followed.

    Parameters
    ----------
    slots, event_times, values : int32[n], int64[n], float64[d, n]
        The readings; those of each stream ascend by (event time, partition, offset).
    last_times, ordinals, last_values : int64[capacity], int32[capacity], float64[d, capacity]
        The stream table: each stream's newest reading; written. A time is ``NEVER`` if the stream has had no reading.
    ttl : int, ms
        A stream becomes unknown if a reading comes more than this after its last one.
    expired : int, epoch ms
        No stream expired whose last reading was at this time or later. ``NEVER``: no stream expired.
    n_recounted : int
        How many ordinals from ``RECOUNTED`` on earlier calls have given.
    touched, touched_slots, n_touched : bool[capacity], int32[capacity], int
        The slots that changed since the last delta, as a set and as a list; written.
    kinds : uint8[n]
        Written. LATE: the reading is older than the stream's last one and changed nothing. FIRST: the stream had no
        reading. RETURNED: its last reading is more than ``ttl`` before. MOVED: any other reading.
    previous_times, previous_values : int64[n], float64[d, n]
        Written: the reading before, valid for MOVED and RETURNED.
    reading_ordinals : int32[n]
        Written: how many readings of the stream at the same event time came before. From ``RECOUNTED`` on if the
        reading is before ``expired`` and its stream was unknown, or had such an ordinal. Not valid for LATE.

    Returns
    -------
    tuple of int
        (the new ``n_touched``, the new ``n_recounted``).

    Notes
    -----
    Raises nothing. One pass.
    """
    n_dims = values.shape[0]
    for i in range(slots.size):
        slot = slots[i]
        last = last_times[slot]
        if event_times[i] < last:
            kinds[i] = LATE
            continue
        kinds[i] = FIRST if last == NEVER else RETURNED if event_times[i] - last > ttl else MOVED
        previous_times[i] = last
        for k in range(n_dims):
            previous_values[k, i] = last_values[k, slot]
            last_values[k, slot] = values[k, i]
        if event_times[i] < expired and (last == NEVER or ordinals[slot] >= RECOUNTED):
            ordinals[slot] = RECOUNTED + n_recounted % RECOUNTED
            n_recounted += 1
        else:
            ordinals[slot] = ordinals[slot] + 1 if event_times[i] == last else 0
        reading_ordinals[i] = ordinals[slot]
        last_times[slot] = event_times[i]
        if not touched[slot]:
            touched[slot] = True
            touched_slots[n_touched] = slot
            n_touched += 1
    return n_touched, n_recounted


@njit(cache=True)
def gather_ids(slots: Int32s, id_starts: Int64s, arena: Bytes) -> tuple[Int64s, Bytes]:
    """Return the ids of ``slots``, in that order, as (starts int64[n + 1], bytes uint8[]). Raises nothing."""
    starts = np.empty(slots.size + 1, dtype=np.int64)
    starts[0] = 0
    for i in range(slots.size):
        starts[i + 1] = starts[i] + id_starts[slots[i] + 1] - id_starts[slots[i]]
    data = np.empty(starts[slots.size], dtype=np.uint8)
    for i in range(slots.size):
        at = id_starts[slots[i]]
        for j in range(starts[i + 1] - starts[i]):
            data[starts[i] + j] = arena[at + j]
    return starts, data
