"""What the topics hold after a campaign, against the definition."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

from tests.campaign.load import N_QUERIES, OWN_TOPIC, RUN, Load
from tests.conformance.service import topic_names
from tests.kafka_records import read_all

Said = tuple[str, str, int, str]  # sign, query, time, reason


def events_of(servers: str, topic: str) -> list[dict[str, Any]]:
    """Return the committed events of a topic."""
    return [json.loads(record.value) for record in read_all(servers, topic)]


def what_differs(servers: str, load: Load, kept: Iterable[dict[str, Any]], ignored: str | None = None) -> list[str]:
    """Return a sentence for each difference between the topics and the definition.

    Parameters
    ----------
    kept : events that were in OWN_TOPIC before it was deleted.
    ignored : the beginning of the ids of queries whose replies do not count.
    """
    topics = topic_names(RUN)
    common = events_of(servers, topics["events"])
    own = [*kept, *events_of(servers, OWN_TOPIC)]
    ids = Counter(event["event_id"] for event in [*common, *own])
    different = [f"event {event_id} is there {n} times" for event_id, n in ids.items() if n > 1]

    expected: dict[str, list[Said]] = defaultdict(list)
    expected_own: Counter[tuple[str, Said]] = Counter()
    for event in load.oracle.events:
        said = (event.sign, event.query_id, event.event_time, event.reason)
        if event.query_id in load.owners:
            expected_own[event.stream, said] += 1
        else:
            expected[event.stream].append(said)
    found: dict[str, list[Said]] = defaultdict(list)
    found_own: Counter[tuple[str, Said]] = Counter()
    for read in [*common, *own]:
        said = (read["sign"], read["query_id"], read["event_time"], read["reason"])
        if read["query_id"] in load.owners:
            found_own[read["stream_id"], said] += 1  # in two topics by turns, so without an order
        else:
            found[read["stream_id"]].append(said)
    different += [
        f"stream {stream}: {len(found[stream])} events, expected {len(expected[stream])}"
        for stream in sorted(found.keys() | expected.keys())
        if found[stream] != expected[stream]
    ]
    if found_own != expected_own:
        lost, more = expected_own - found_own, found_own - expected_own
        different.append(f"queries with their own topic: {lost.total()} events are lost, {more.total()} are too many")

    replies = Counter(
        reply["query_id"]
        for reply in events_of(servers, topics["replies"])
        if reply["status"] != "degraded" and not (ignored and reply["query_id"].startswith(ignored))
    )
    if replies != Counter(f"q{n}" for n in range(N_QUERIES)):
        different.append(f"replies: {replies}")
    n_letters = sum(1 for _ in read_all(servers, topics["dead_letter"]))
    if n_letters != load.n_faulty:
        different.append(f"{n_letters} dead letters for {load.n_faulty} faulty records")
    return different
