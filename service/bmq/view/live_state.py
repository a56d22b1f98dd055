"""The state behind the page: what the reading threads put in, and what each browser is missing.

There is no queue for a browser. An update holds what changed after the revision that the browser has, so a browser that
asks rarely gets fewer updates, each no larger than everything, and holds up nobody.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bmq.client.messages import Event, JoinEvent, Member, ReplyMessage
from bmq.records import Feed
from bmq.view.query_members import MOST_MEMBERS
from bmq.view.shown_events import MOST_DEAD_LETTERS, ShownEvents
from bmq.view.stream_positions import StreamPositions
from bmq.view.watched_queries import WatchedQueries, with_members


@dataclass(frozen=True, slots=True)
class Seen:
    """How far a browser has come: the revision of the state, the number of the last event, and of the dead letters."""

    revision: int = 0
    event: int = 0
    dead_letter: int = 0


class LiveState:
    """Thread-safe.

    Parameters
    ----------
    feeds : by name.
    members_of_events : whether the events say who is inside; otherwise the membership topic does.
    clock : seconds that never go back.
    """

    def __init__(
        self, feeds: Mapping[str, Feed], *, members_of_events: bool, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._lock = threading.Lock()
        self._clock = clock
        self._feeds = feeds
        self._members_of_events = members_of_events
        self._revision = 1  # a browser that has seen nothing has 0
        self._positions = {name: StreamPositions(len(feed.dimensions)) for name, feed in feeds.items()}
        self._queries = WatchedQueries(self._change_inside, members_of_events=members_of_events)
        self._events = ShownEvents()
        self._dead: deque[dict[str, Any]] = deque(maxlen=MOST_DEAD_LETTERS)
        self._n_dead = 0
        self._troubles: dict[str, str] = {}
        self._health: dict[str, Any] = {}
        self._n_skipped = 0

    def apply_readings(self, feed: str, readings: Iterable[tuple[str, int, Sequence[float]]], n_skipped: int) -> None:
        """Keep readings (stream id, event time, values) of a feed; ``n_skipped`` records were not read."""
        with self._lock:
            self._revision += 1
            self._n_skipped += n_skipped
            positions = self._positions[feed]
            for stream_id, event_time, values in readings:
                positions.apply(stream_id, event_time, values, self._revision)

    def put_query(self, query_id: str, value: bytes, offset: int, published: int) -> Any:
        """Note a definition of the control topic; return it."""
        with self._lock:
            self._revision += 1
            return self._queries.put(query_id, value, offset, published, self._revision, self._clock())

    def delete_query(self, query_id: str, offset: int) -> None:
        """Note a delete of the control topic."""
        with self._lock:
            self._revision += 1
            self._queries.delete(query_id, offset, self._revision)

    def add_reply(self, reply: ReplyMessage) -> None:
        """Note a reply."""
        with self._lock:
            self._revision += 1
            self._queries.reply(reply, self._revision)

    def output_of(self, query_id: str) -> tuple[str | None, str]:
        """Return the output topic that the last definition of a query names, and the status of that definition."""
        with self._lock:
            return self._queries.output_of(query_id)

    def query_ids(self) -> list[str]:
        """Return the ids of all queries, the one that changed last at the end."""
        with self._lock:
            return self._queries.ids()

    def add_events(self, events: Iterable[Event | JoinEvent]) -> None:
        """Note events, in the order of their topic."""
        with self._lock:
            self._revision += 1
            now = self._clock()
            for event in events:
                if not self._events.add(event):
                    continue
                if isinstance(event, JoinEvent) or not event.crossings():
                    self._queries.count(event.query_id or "", now)
                    continue
                for sign, query_id in event.crossings():
                    self._queries.count(query_id, now)
                    if self._members_of_events and not event.is_pass:
                        member = (event.feed, event.stream_id)
                        if sign == "+":
                            self._queries.enter(query_id, member, now, event.query_version)
                        else:
                            self._queries.leave(query_id, member, now)
                self._place(event)

    def set_member(self, key: tuple[str, str, str], member: Member | None) -> None:
        """Note a record of the membership topic; ``key`` is query id, feed and stream id."""
        query_id, feed, stream_id = key
        with self._lock:
            self._revision += 1
            if member is not None:
                self._queries.enter(query_id, (feed, stream_id), self._clock())
            else:
                self._queries.leave(query_id, (feed, stream_id), self._clock())

    def add_dead_letter(self, letter: dict[str, Any]) -> None:
        """Note a dead letter."""
        with self._lock:
            self._n_dead += 1
            self._dead.append({**letter, "n": self._n_dead})

    def set_trouble(self, topic: str, sentence: str | None) -> None:
        """Note why a topic cannot be read, or that it can (None)."""
        with self._lock:
            if sentence is None:
                self._troubles.pop(topic, None)
            else:
                self._troubles[topic] = sentence

    def set_health(self, health: dict[str, Any]) -> None:
        """Note the figures of the service."""
        with self._lock:
            self._health = health

    def update_since(self, seen: Seen, *, with_counts: bool) -> tuple[dict[str, Any], Seen]:
        """Return what a browser is missing, and how far it has come with that.

        Parameters
        ----------
        with_counts : whether also the slow part is due: counts of queries, and health.
        """
        with self._lock:
            is_first = seen.revision == 0
            update: dict[str, Any] = {
                "feeds": {
                    name: changed
                    for name, positions in self._positions.items()
                    if (changed := positions.since(seen.revision))
                },
                "queries": self._queries.since(seen.revision),
                "gone": [] if is_first else self._queries.gone_since(seen.revision),
                "events": self._events.since(seen.event),
                "missed": 0,
                "dead": [letter for letter in self._dead if letter["n"] > seen.dead_letter],
            }
            if not is_first:
                update["missed"] = self._events.newest - seen.event - len(update["events"])
            if with_counts or is_first:
                update["counts"] = self._queries.counts(self._clock(), everything=is_first)
                update["health"] = self._health | {
                    "troubles": self._all_troubles(),
                    "skipped": self._n_skipped,
                    "streams_left_out": {
                        name: one.n_left_out for name, one in self._positions.items() if one.n_left_out
                    },
                    "queries_left_out": self._queries.n_left_out,
                }
            return update, Seen(self._revision, self._events.newest, self._n_dead)

    def has_forgotten(self, seen: Seen) -> bool:
        """Return whether a browser has missed too much and needs everything anew."""
        with self._lock:
            return seen.revision > 0 and self._queries.has_forgotten(seen.revision)

    def details(self, query_id: str) -> dict[str, Any] | None:
        """Return versions, replies and members of a query; None if there is no such query."""
        with self._lock:
            found = self._queries.details(query_id)
        return None if found is None else with_members(*found)

    def matching_events(self, query: str, stream: str, kind: str, feed: str) -> list[dict[str, Any]]:
        """Return the last events that fit a filter."""
        with self._lock:
            return self._events.matching(query, stream, kind, feed)

    def _all_troubles(self) -> dict[str, str]:
        if not self._queries.members.is_full:
            return dict(self._troubles)
        most = f"There are more than {MOST_MEMBERS:,}; the page does not count the others."
        return self._troubles | {"members": most}

    def _change_inside(self, member: tuple[str, str], change: int) -> None:
        feed, stream_id = member
        if feed in self._positions:
            self._positions[feed].change_inside(stream_id, change, self._revision)

    def _place(self, event: Event) -> None:
        """Use the value of an event as the stream's position, if no later reading is known."""
        feed = self._feeds.get(event.feed)
        if feed is None or event.is_pass or any(name not in event.value for name in feed.dimensions):
            return
        values = [event.value[name] for name in feed.dimensions]
        self._positions[event.feed].apply(event.stream_id, event.event_time, values, self._revision)
