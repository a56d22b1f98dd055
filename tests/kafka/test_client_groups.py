"""Readers that remember where they were, the asyncio twin of the client, and events as a frame."""

import asyncio
from collections.abc import Iterator
from itertools import islice
from uuid import uuid4

import pytest

from bmq.client import AsyncClient, Client, Event
from bmq.errors import SetupError
from tests.kafka.pure_responder import Place, PureResponder, make_place

pytestmark = pytest.mark.kafka

FORTIES = {"kind": "border", "feed": "stocks", "region": {"box": {"price": [40, 50]}}, "tags": {"desk": "north"}}
STREAMS = {"A": 41.0, "B": 42.0, "C": 43.0, "D": 44.0}
LIMIT_SECONDS = 30.0  # a new group gets its partitions after three seconds


@pytest.fixture
def place(bootstrap_servers: str) -> Iterator[Place]:
    """A service with one query, of which four streams have entered the region."""
    place = make_place(bootstrap_servers)
    with PureResponder(place), Client(place.servers, topics=place.topics) as client:
        client.put("forties", FORTIES)
        place.read(stocks=STREAMS)
        assert len(set(streams_of(client.events(from_beginning=True, timeout=LIMIT_SECONDS), 4))) == 4
        yield place


def streams_of(events: Iterator[object], n: int) -> list[str]:
    """Return the streams of the next events; the last of them does not count as read."""
    return [event.stream_id for event in islice(events, n) if isinstance(event, Event)]


def take(client: Client, group: str, n: int) -> list[str]:
    events = client.events(group=group, from_beginning=True, timeout=LIMIT_SECONDS)
    found = streams_of(events, n)
    events.close()  # type: ignore[attr-defined]  # a generator, as an exception in a loop over it would end it
    return found


def test_a_group_goes_on_where_it_was_and_misses_nothing(place: Place) -> None:
    group, other = f"alerts-{uuid4()}", f"others-{uuid4()}"
    with Client(place.servers, topics=place.topics) as client:
        first, second = take(client, group, 2), take(client, group, 3)

        assert sorted({*first, *second}) == sorted(STREAMS)
        assert second[0] == first[1]  # it was taken, but the next one was not asked for
        assert take(client, other, 1) == first[:1]


def test_a_new_group_begins_at_the_end_and_goes_on_from_there(place: Place) -> None:
    group = f"late-{uuid4()}"
    with Client(place.servers, topics=place.topics) as client:
        assert list(client.events(group=group, timeout=4.0)) == []
        place.read(stocks={"A": 60.0})  # nobody listens
        events = client.events(group=group, timeout=LIMIT_SECONDS)
        event = next(events)

    assert isinstance(event, Event)
    assert (event.stream_id, event.sign) == ("A", "-")


def test_a_group_of_a_topic_that_is_not_there_is_refused(place: Place) -> None:
    with Client(place.servers, topics=place.topics) as client, pytest.raises(SetupError, match="no topic 'absent'"):
        client.events(topic="absent", group="alerts")


def test_a_frame_has_a_row_for_each_event(place: Place) -> None:
    with Client(place.servers, topics=place.topics) as client:
        frame = client.events_frame(query_id="forties")

    assert dict(zip(frame["stream_id"], frame["value.price"], strict=True)) == STREAMS
    assert set(frame["sign"]) == {"+"}
    assert set(frame["tags.desk"]) == {"north"}


def test_the_asyncio_twin_puts_reads_and_deletes(place: Place) -> None:
    group = f"async-{uuid4()}"

    async def read(client: AsyncClient, n: int) -> list[str]:
        found = []
        async for event in client.events(group=group, from_beginning=True, timeout=LIMIT_SECONDS):
            found += [event.stream_id] if isinstance(event, Event) else []
            if len(found) == n:
                break
        return found

    async def use() -> tuple[list[str], list[str]]:
        async with AsyncClient(place.servers, topics=place.topics) as client:
            assert (await client.put("fifties", FORTIES)).status == "accepted"
            assert (await client.queries()).keys() == {"forties", "fifties"}
            assert len(await client.events_frame("forties")) == len(STREAMS)
            found = await asyncio.gather(read(client, 4), asyncio.to_thread(lambda: streams_by_thread(place)))
            assert (await client.delete("fifties")).status == "deleted"
            return found[0], found[1]

    by_asyncio, by_thread = asyncio.run(use())

    assert sorted(by_asyncio)[:4] == sorted(by_thread)[:4] == sorted(STREAMS)


def streams_by_thread(place: Place) -> list[str]:
    with Client(place.servers, topics=place.topics) as client:
        return streams_of(client.events("forties", from_beginning=True, timeout=LIMIT_SECONDS), 4)
