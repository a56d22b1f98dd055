"""Checks the event topics against the rules of the ledger (docs/semantics.md).

For each feed, query and stream the signs alternate, beginning with +. The same holds for each band join and pair of
streams. No event id occurs twice. The checker receives events one by one in the order of their topic. Knows events, but
does not read Kafka.

Memory: about 400 bytes for each query and stream (and 150 more for each version of the query that had events of
the stream), and 150 for each of the last `REMEMBERED_IDS` event ids.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from bmq.client.messages import Event, JoinEvent, Sign, read_event

# A repeated event follows within or right behind its batch, because only the last batch is ever run again. So this is
# more than the events of a batch. Fewer would miss repeats in a huge batch; more would take memory.
REMEMBERED_IDS = 4_000_000

SHOWN_FAULTS = 100  # faults, and repeats; all are counted, but a broken ledger may have millions


class Pair(NamedTuple):
    """A query and a stream; the signs of their events alternate."""

    feed: str
    query_id: str
    stream_id: str

    def __str__(self) -> str:
        return f"feed {self.feed}, query {self.query_id}, stream {self.stream_id}"


class JoinedPair(NamedTuple):
    """A band join and two streams; the signs of their events alternate."""

    left_feed: str
    right_feed: str
    query_id: str
    left: str
    right: str

    def __str__(self) -> str:
        return f"feeds {self.left_feed} ~ {self.right_feed}, query {self.query_id}, streams {self.left} ~ {self.right}"


@dataclass(slots=True)
class _Run:
    """The signs of one pair in one topic and version of the query; they are in one partition, and so in order."""

    topic: str
    version: int | None
    first: Sign
    last: Sign
    last_time: int


@dataclass(slots=True)
class Report:
    """The result of the check.

    Attributes
    ----------
    n_faults, faults : the number of faults, and the first of them as sentences.
    n_repeats, repeats : the number of events that occur again with the same id and content, as after a crash, and the
        first of them as sentences.
    n_back : events that are older than the event before them; correct only for readings that arrive after an expiry.
    n_foreign : records that are not events.
    """

    n_events: int = 0
    n_pairs: int = 0
    n_faults: int = 0
    faults: list[str] = field(default_factory=list)
    n_repeats: int = 0
    repeats: list[str] = field(default_factory=list)
    n_back: int = 0
    n_foreign: int = 0

    @property
    def is_whole(self) -> bool:
        """Whether there are neither faults nor repeats."""
        return not self.n_faults and not self.n_repeats

    def add_fault(self, sentence: str) -> None:
        """Count a fault, and keep its sentence if there are fewer than SHOWN_FAULTS."""
        self.n_faults += 1
        if len(self.faults) < SHOWN_FAULTS:
            self.faults.append(sentence)


class Ledger:
    """The checker.

    Parameters
    ----------
    from_beginning : whether the topics have every event since the service's first start. If not, the first sign of a
        pair may be -, because the topic's retention may have removed the +.
    remembered_ids : how many event ids are remembered.
    """

    def __init__(self, *, from_beginning: bool, remembered_ids: int = REMEMBERED_IDS) -> None:
        self._from_beginning = from_beginning
        self._remembered_ids = remembered_ids
        self._contents: dict[str, int] = {}  # event id -> hash of the value, the oldest first
        self._runs: dict[Pair | JoinedPair, list[_Run]] = {}
        self._report = Report()

    def take(self, topic: str, value: bytes | None) -> None:
        """Check the next record of a topic; call it for one topic after the other, with each partition in its order."""
        event = read_event(value or b"")
        if event is None:
            self._report.n_foreign += 1
        elif not self._is_repeat(event, topic, hash(value)):
            self._report.n_events += 1
            for pair, sign in _signs(event):
                self._take_sign(pair, sign, event, topic)

    def finish(self) -> Report:
        """Return the report on all records; do not call `take` afterwards."""
        self._report.n_pairs = len(self._runs)
        for pair, runs in self._runs.items():
            for sentence in self._faults_between(runs):
                self._report.add_fault(f"{pair}: {sentence}")
        return self._report

    def _is_repeat(self, event: Event | JoinEvent, topic: str, content: int) -> bool:
        """Remember the event's id and return whether it was known: a repeat, or a fault if the content differs."""
        known = self._contents.get(event.event_id)
        if known is None:
            self._contents[event.event_id] = content
            if len(self._contents) > self._remembered_ids:
                del self._contents[next(iter(self._contents))]
            return False
        what = f"{topic}: event {event.event_id} of {event.subject} at event time {event.event_time}"
        if known != content:
            self._report.add_fault(f"{what} has the id of another event")
            return True
        self._report.n_repeats += 1
        if len(self._report.repeats) < SHOWN_FAULTS:
            self._report.repeats.append(f"{what} came again")
        return True

    def _take_sign(self, pair: Pair | JoinedPair, sign: Sign, event: Event | JoinEvent, topic: str) -> None:
        runs = self._runs.setdefault(pair, [])
        run = runs[-1] if runs else None
        if run is not None and run.topic == topic:
            # Only for one feed, because the clocks of two feeds differ: an expiry by one clock may be earlier than a
            # reading of the other feed.
            self._report.n_back += event.event_time < run.last_time and isinstance(pair, Pair)
            if run.version == event.query_version:
                if run.last == sign:
                    self._report.add_fault(f"{pair}: {sign} behind {sign}, at event time {event.event_time}")
                run.last, run.last_time = sign, event.event_time
                return
        runs.append(_Run(topic, event.query_version, sign, sign, event.event_time))

    def _faults_between(self, runs: list[_Run]) -> Iterator[str]:
        """Yield the faults between the versions of a query, whose events may be in different topics."""
        if any(run.version is None for run in runs):
            # Events of layout `reading` have no version, so the order of events in different topics is not known.
            if self._from_beginning and len(runs) == 1 and runs[0].first == "-":
                yield "begins with -"
            return
        ordered = sorted(runs, key=lambda run: run.version or 0)
        if self._from_beginning and ordered[0].first == "-":
            yield f"begins with - (version {ordered[0].version})"
        for before, after in pairwise(ordered):
            if before.version == after.version:
                yield f"version {after.version} has events in more than one place"
            elif before.last == after.first:
                yield f"version {after.version} begins with {after.first} behind {before.last}"


def _signs(event: Event | JoinEvent) -> Iterator[tuple[Pair | JoinedPair, Sign]]:
    """Yield each pair of an event with its sign; nothing if the event has no sign."""
    if isinstance(event, Event):
        for sign, query_id in event.crossings():
            yield Pair(event.feed, query_id, event.stream_id), sign
    elif event.sign is not None and event.left is not None and event.right is not None:
        left, right = event.left, event.right
        yield JoinedPair(left.feed, right.feed, event.query_id, left.stream_id, right.stream_id), event.sign
