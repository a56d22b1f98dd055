"""The input and the output of trackings: items and events, as columns. In kernels the events are records."""

from dataclasses import dataclass

import numpy as np

from bmq.engines.event_columns import Events
from bmq.kernels.tracking.tracking_events import EVENT, Items
from bmq.kernels.tracking.tracking_rows import Records
from bmq.records import NEVER, Float64s, Int8s, Int32s, Int64s, Kind
from bmq.records.record_fields import fields_of


@dataclass(frozen=True, slots=True)
class TrackingItems:
    """Crossings and ends that change trackings, as columns of n, in any order.

    Attributes
    ----------
    queries, streams : int32[n], slots.
    moments : int64[n], epoch ms at which the item happens: the time of the reading, or the due of a timer.
    classes : int8[n], the order at one moment: AT_READING, AT_STREAM_EXPIRY, AT_QUERY_EXPIRY. Items of one moment and
        class stay in the given order.
    actions : int8[n], IN and OUT: crossings; END: the membership ends at once, and a pending crossing is dropped.
    reasons : int8[n], `Reason`.
    event_times : int64[n], epoch ms; equal to the moments, except for passes.
    ordinals, rows, passes : int32[n], copied into the event.
    values : float64[d, n], of the stream.
    """

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


@dataclass(frozen=True, slots=True)
class TrackingEvents:
    """Events of trackings. Those of one tracking are in order; the trackings have no order.

    Attributes
    ----------
    events : `whens` are the classes of the items, and CONFIRMED if a pending crossing fired. Then the row is -1, and
        there is no pass.
    n_suppressed : the number of events that `cooldown` and `max_events` suppressed.
    """

    events: Events
    n_suppressed: int


def as_columns(items: TrackingItems) -> Items:
    """Return the items for kernels, which are compiled for arrays that are contiguous and writable."""
    return Items(
        **{
            field.name: np.require(getattr(items, field.name), field.dtype, ("C_CONTIGUOUS", "WRITEABLE"))
            for field in fields_of(TrackingItems)
        }
    )


def room(n: int, n_dims: int) -> tuple[Records, Float64s]:
    """Return arrays for ``n`` events: EVENT[n], and their values, float64[n, d]."""
    return np.empty(n, dtype=EVENT), np.empty((n, n_dims))


def as_events(parts: list[tuple[Records, Float64s]], n_dims: int, n_suppressed: int) -> TrackingEvents:
    """Return the events of all ``parts``; each part is a pair of arrays as ``room`` returns them, cut to length."""
    events, values = parts[0] if len(parts) == 1 else _concat(parts, n_dims)
    columns = {name: np.ascontiguousarray(events[name]) for name in EVENT.names or ()}
    # Events of kernels have no kind. The kernels set `began` in the events of a pattern, and in no others.
    kinds = np.where(columns["began"] == NEVER, Kind.BORDER.number, Kind.TRANSITION.number).astype(np.int8)
    whens = columns.pop("classes")  # `When` and the classes of trackings are the same numbers
    found = Events(**columns, whens=whens, kinds=kinds, values=np.ascontiguousarray(values.T))
    return TrackingEvents(found, n_suppressed)


def _concat(parts: list[tuple[Records, Float64s]], n_dims: int) -> tuple[Records, Float64s]:
    empty_events, empty_values = room(0, n_dims)
    return (
        np.concatenate([empty_events, *(events for events, _ in parts)]),
        np.concatenate([empty_values, *(values for _, values in parts)]),
    )
