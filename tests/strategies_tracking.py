"""Options of tracked queries, and items for their trackings, on a coarse grid: items come at the dues of others."""

from typing import NamedTuple

from hypothesis import strategies as st

from bmq.engines.tracking import trackings as engine
from bmq.records import Kind, Pattern, Reason, Region, RegionQuery

N_QUERIES, N_STREAMS = 2, 2  # few, so that much happens to each tracking

_REGION = Region((0.0,), (1.0,))
_durations = st.sampled_from([0, 0, 1, 2, 5])


class Item(NamedTuple):
    """One item of `bmq.engines.tracking.tracking_items.TrackingItems`."""

    query: int
    stream: int
    moment: int
    class_: int
    action: int
    reason: int
    event_time: int
    ordinal: int
    row: int
    pass_: int
    value: float


@st.composite
def tracked_queries(draw: st.DrawFn) -> RegionQuery:
    """Draw a transition query, or a border query with any noise options."""
    pattern = draw(st.sampled_from([None, None, *Pattern]))
    if pattern:
        return RegionQuery("q", 1, "f", _REGION, kind=Kind.TRANSITION, pattern=pattern, within_ms=draw(_durations))
    return RegionQuery(
        "q",
        1,
        "f",
        _REGION,
        stay_for_ms=draw(_durations),
        away_for_ms=draw(_durations),
        cooldown_ms=draw(st.sampled_from([0, 1, 3, 5])),
        max_events=draw(st.sampled_from([None, None, 1, 3])),
    )


@st.composite
def item_lists(draw: st.DrawFn, registered: dict[int, RegionQuery], begin: int) -> list[Item]:
    """Draw items from ``begin`` on, in order."""
    facts = draw(
        st.lists(
            st.tuples(
                st.sampled_from(sorted(registered)),
                st.integers(0, N_STREAMS - 1),
                st.integers(begin, begin + 8),
                st.sampled_from([engine.IN, engine.OUT] * 2 + [engine.END]),
                st.integers(0, 2),
                st.integers(-3, 3).map(float),
            ),
            min_size=5,
            max_size=20,
        )
    )
    items = []
    for number, (query, stream, moment, action, offset, value) in enumerate(facts):
        # At an expiry there are only ends, and only passes happen before the reading that shows them.
        classes = (engine.AT_READING, engine.AT_STREAM_EXPIRY, engine.AT_QUERY_EXPIRY)
        class_ = classes[offset if action == engine.END else 0]
        options = registered[query]
        is_delayed = bool(options.pattern or options.stay_for_ms or options.away_for_ms)
        event_time = moment if is_delayed or action == engine.END else moment - offset
        reason = Reason.STREAM_EXPIRED if class_ else Reason.MOVED
        items.append(Item(query, stream, moment, class_, action, reason, event_time, number % 3, number, offset, value))
    return sorted(items, key=lambda item: (item.moment, item.class_))
