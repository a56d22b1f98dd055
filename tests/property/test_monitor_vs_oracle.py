"""Programs that once had wrong events, or nearly: the monitor, with all bytes around it, against the definition.

Random ones are in test_service_machine.py; what one of them finds and is worth keeping goes here, as small as it is.
"""

import pytest

from tests.oracle import Definition, Oracle, Reading, broken_ledgers
from tests.programs import (
    FEEDS,
    SERVED,
    Arrival,
    Batch,
    Delete,
    Mark,
    Put,
    as_answer,
    as_event,
    by_query,
    by_stream,
    differences,
    run,
    tell,
)
from tests.pure_service import PureService

pytestmark = pytest.mark.property


def put(feed: str, lo: float, hi: float, **options: object) -> Put:
    definition: Definition = {"kind": "border", "feed": feed, "region": {"box": {"x": [lo, hi]}}, **options}
    return Put("q", definition)


def at(feed: str, event_time: int, x: float, stream: str = "a") -> Arrival:
    return Arrival(feed, 0, Reading(stream, event_time, (x,) + (0.0,) * (len(FEEDS[feed].dimensions) - 1)))


PROGRAMS = {
    "a stream of the same name in the old feed of a query and in its new one, at equal times": [
        Batch((put("plane", 0, 1),), (at("plane", 11, 0.0), at("line", 10, 0.0))),
        Batch((put("line", 0, 1),), (at("line", 11, 2.0),)),
    ],
    "silent in the old feed and in the new one: a name ends there and begins here, in one batch": [
        Batch((), (at("plane", 10, 0.0), at("line", 10, 0.0))),
        Batch((put("plane", 0, 1, initial="silent"),), ()),
        Batch((put("line", 0, 1, initial="silent"),), ()),
        Batch((), (at("line", 11, 2.0),), "replica"),
    ],
    "a monitor that has answered a command follows another one: what it knew of the streams then is old": [
        Batch((), (at("line", 10, 5.0),)),
        Batch((put("line", 0, 1),), ()),
        Batch((), (at("line", 11, 0.0, "b"),), "replica"),
        Batch((Delete("q"),), (), "replica"),
    ],
    "a stay that began before its query was put is confirmed at the next mark": [
        Batch((), (at("line", 10, 0.0),)),
        Batch((put("line", 0, 1, stay_for="2ms"),), (Mark("line", 12),)),
        Batch((), (Mark("line", 13),), "snapshot"),
    ],
}


@pytest.mark.parametrize("n_shards", [1, 3])
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_the_service_says_what_the_definition_says(program: list[Batch], n_shards: int) -> None:
    oracle, service = Oracle(FEEDS), PureService(SERVED, n_shards)

    tell(oracle, program)
    run(service, program)

    emitted = [as_event(message) for message in service.events]
    assert not differences(by_stream(emitted), by_stream(oracle.events))
    assert not differences(by_query(map(as_answer, service.replies)), by_query(oracle.answers))
    assert broken_ledgers(emitted) == []
    assert len({message["event_id"] for message in service.events}) == len(emitted)
