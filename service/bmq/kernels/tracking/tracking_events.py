"""The items that change trackings, and the events that follow from them. Arrays in, numbers out.

Knows the layout of items and events. It must not know when an item makes an event; that is `noise` and `tran_seq`.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from bmq.kernels.tracking.tracking_rows import Records, Table
from bmq.records import NEVER, Float64s, Int8s, Int32s, Int64s

# The actions of an item, and the classes that order the items of one moment.
IN, END, OUT = 1, 0, -1
AT_READING, FIRED, AT_STREAM_EXPIRY, AT_QUERY_EXPIRY = range(4)

EVENT = np.dtype(
    [
        ("moments", np.int64),
        ("event_times", np.int64),
        ("confirmed_times", np.int64),
        ("began", np.int64),
        ("queries", np.int32),
        ("streams", np.int32),
        ("ordinals", np.int32),
        ("rows", np.int32),
        ("passes", np.int32),
        ("classes", np.int8),
        ("signs", np.int8),
        ("reasons", np.int8),
    ],
    align=True,
)


class Items(NamedTuple):
    """Items as columns of n; the attributes are those of `engines.tracking.tracking_items.TrackingItems`."""

    queries: Int32s
    streams: Int32s
    moments: Int64s
    classes: Int8s
    actions: Int8s
    reasons: Int8s
    event_times: Int64s
    ordinals: Int32s
    rows: Int32s
    passes: Int32s
    values: Float64s


@njit(cache=True, forceinline=True)
def write_item(items: Items, i: int, sign: int, began: int, events: Records, values: Float64s, at: int) -> None:
    """Write the event of item ``i`` to place ``at``; ``began`` is when a transition began, or NEVER (epoch ms)."""
    event = events[at]
    event.queries, event.streams, event.rows = items.queries[i], items.streams[i], items.rows[i]
    event.moments, event.classes, event.event_times = items.moments[i], items.classes[i], items.event_times[i]
    event.signs, event.reasons, event.ordinals = sign, items.reasons[i], items.ordinals[i]
    event.confirmed_times, event.began, event.passes = NEVER, began, items.passes[i]
    for k in range(values.shape[1]):
        values[at, k] = items.values[k, i]


@njit(cache=True, forceinline=True)
def write_pending(tracked: Table, row: int, sign: int, moment: int, events: Records, values: Float64s, at: int) -> None:
    """Write the event of the crossing that was pending in a row to place ``at``; its event time is ``moment``."""
    event, fired = events[at], tracked.rows[row]
    event.queries, event.streams, event.rows = fired.query, fired.stream, -1
    event.moments, event.classes, event.event_times = moment, FIRED, moment
    event.signs, event.reasons, event.ordinals = sign, fired.reason, fired.ordinal
    event.confirmed_times, event.began, event.passes = NEVER, NEVER, 0
    for k in range(values.shape[1]):
        values[at, k] = tracked.values[row, k]
