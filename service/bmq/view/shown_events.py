"""The last events and dead letters, each as the page shows it."""

from collections import OrderedDict, deque
from typing import Any

from bmq.client.messages import Event, JoinEvent

MOST_EVENTS = 20_000
MOST_IN_UPDATE = 400  # a browser that reads four updates a second shows no more; it gets the number of the others
MOST_DEAD_LETTERS = 200

BOTH = " ~ "  # between the two sides of a join

# What a stream did, for events without a sign.
_DEEDS = {
    "in_then_out": "entered and soon left",
    "out_then_in": "left and soon entered",
    "in_not_out": "stayed in",
    "out_not_in": "stayed out of",
    "match": "is inside",
    "select": "satisfies",
}
_CROSSINGS = {"+": "entered", "-": "left"}
_JOINS = {"+": "came into", "-": "left", None: "satisfies"}


class ShownEvents:
    """The last events, each with a number of its own; an event that comes twice is kept once."""

    def __init__(self, most: int = MOST_EVENTS) -> None:
        self._events: deque[dict[str, Any]] = deque(maxlen=most)
        self._known: OrderedDict[str, None] = OrderedDict()
        self._most = most
        self._next = 1

    def add(self, event: Event | JoinEvent) -> bool:
        """Keep an event, one entry for each crossing; return False if it has come before."""
        if event.event_id in self._known:
            return False
        self._known[event.event_id] = None
        if len(self._known) > self._most:
            self._known.popitem(last=False)
        for entry in _entries(event):
            entry["n"] = self._next
            self._next += 1
            self._events.append(entry)
        return True

    @property
    def newest(self) -> int:
        """The number of the last event, or 0 before the first event."""
        return self._next - 1

    def since(self, number: int) -> list[dict[str, Any]]:
        """Return the last events behind a number, the newest last, MOST_IN_UPDATE at most."""
        n = min(self.newest - number, MOST_IN_UPDATE, len(self._events))
        return [self._events[k] for k in range(len(self._events) - n, len(self._events))]

    def matching(self, query: str, stream: str, kind: str, feed: str) -> list[dict[str, Any]]:
        """Return the last events whose query and stream contain these texts; ``kind`` and ``feed``: "" for any."""
        found: list[dict[str, Any]] = []
        for event in reversed(self._events):
            if kind not in ("", event["kind"]) or (feed and feed not in event["feed"].split(BOTH)):
                continue
            if query in event["query"] and stream in event["stream"]:
                found.append(event)
                if len(found) == MOST_IN_UPDATE:
                    break
        return found[::-1]


def _entries(event: Event | JoinEvent) -> list[dict[str, Any]]:
    if isinstance(event, JoinEvent):
        readings = event.readings
        entry = {
            "query": event.query_id,
            "sign": event.sign,
            "deed": _JOINS[event.sign] if len(readings) > 1 else "changed the answer of",
            "feed": BOTH.join(reading.feed for reading in readings),
            "stream": BOTH.join(reading.stream_id for reading in readings),
            "value": {f"{reading.feed}.{name}": x for reading in readings for name, x in reading.value.items()},
        }
        return [{"kind": event.kind, "time": event.event_time, "reason": event.reason, "tags": event.tags} | entry]
    common = {
        "kind": event.kind,
        "time": event.event_time,
        "reason": event.reason,
        "tags": event.tags,
        "feed": event.feed,
        "stream": event.stream_id,
        "value": event.value,
    }
    if event.query_id is not None and event.sign is None:
        deed = event.pattern or event.kind
        return [common | {"query": event.query_id, "sign": None, "deed": _DEEDS.get(deed, deed)}]
    return [
        common | {"query": query_id, "sign": sign, "deed": _CROSSINGS[sign]} for sign, query_id in event.crossings()
    ]
