"""Late readings: those that are too far behind the newest reading of their own stream. Arrays in, numbers out.

Knows slots, partitions and times. It must not know where a reading is held, or what it does.
"""

from numba import njit

from bmq.records import NEVER, Bools, Int32s, Int64s


@njit(cache=True)
def find_late(
    slots: Int32s,
    partitions: Int32s,
    event_times: Int64s,
    max_lateness: int,
    newest: Int64s,
    scratch: Int64s,
    late: Bools,
) -> None:
    """Write which readings are late, and move the newest time of each stream on.

    A reading is late if a reading of its stream that is more than ``max_lateness`` newer came before it: in an earlier
    batch, or earlier in its own partition. Partitions of one batch have no order among them.

    Parameters
    ----------
    slots, partitions, event_times : int32[n], int32[n], int64[n]
        The readings, ascending by (partition, offset).
    max_lateness : int, ms
    newest : int64[n_slots], epoch ms
        The newest event time of each stream, ``NEVER`` if there is none; written.
    scratch : int64[n_slots]
        Filled with ``NEVER``; restored before the return.
    late : bool[n]
        Written.

    Notes
    -----
    Raises nothing. O(n), no allocation.
    """
    begin = 0
    for i in range(slots.size):
        if partitions[i] != partitions[begin]:
            for j in range(begin, i):
                scratch[slots[j]] = NEVER
            begin = i
        own = max(newest[slots[i]], scratch[slots[i]])
        # Added to the time and not subtracted from the newest: NEVER is the smallest int64 and would wrap around.
        late[i] = event_times[i] + max_lateness < own
        if not late[i]:
            scratch[slots[i]] = max(scratch[slots[i]], event_times[i])
    for j in range(begin, slots.size):
        scratch[slots[j]] = NEVER
    for i in range(slots.size):
        if not late[i]:
            newest[slots[i]] = max(newest[slots[i]], event_times[i])
