"""The client: commands and their own replies, the standing queries, events."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice

import pytest
from kafka import KafkaConsumer, KafkaProducer

from bmq.client import Client, Event
from bmq.config import TopicsSection
from bmq.errors import SetupError
from bmq.kafka_io.topics import Topics
from tests.kafka.pure_responder import Place, PureResponder, make_place

pytestmark = pytest.mark.kafka

FORTIES = {"kind": "border", "feed": "stocks", "region": {"box": {"price": [40, 50]}}}
FIFTIES = {"kind": "border", "feed": "stocks", "region": {"box": {"price": [50, 60]}}}
LIMIT_SECONDS = 20.0  # for what takes milliseconds; a busy machine takes seconds


@pytest.fixture
def place(bootstrap_servers: str) -> Place:
    return make_place(bootstrap_servers)


@pytest.fixture
def client(place: Place) -> Iterator[Client]:
    with Client(place.servers, topics=place.topics) as client:
        yield client


@pytest.fixture
def service(place: Place) -> Iterator[None]:
    with PureResponder(place):
        yield


@pytest.mark.usefixtures("service")
def test_put_returns_the_reply_to_this_very_command(client: Client) -> None:
    replies = [client.put("q", definition) for definition in (FORTIES, FIFTIES, FIFTIES)]

    assert [reply.status for reply in replies] == ["accepted", "accepted", "unchanged"]
    assert [reply.control_offset for reply in replies] == [0, 1, 2]
    assert replies[1].version == 2


@pytest.mark.usefixtures("service")
def test_a_rejection_is_a_reply_and_no_exception(client: Client) -> None:
    reply = client.put("q", {"kind": "border", "feed": "stoks", "region": {"box": {"price": [40, 50]}}})

    assert reply.status == "rejected"
    assert reply.error is not None
    assert reply.error.code == "unknown_feed"
    assert "'stocks'" in reply.error.message


@pytest.mark.usefixtures("service")
def test_delete_returns_whether_there_was_a_query(client: Client) -> None:
    client.put("q", FORTIES)

    assert client.delete("q").status == "deleted"
    assert client.delete("q").status == "rejected"


@pytest.mark.usefixtures("service")
def test_many_queries_are_put_in_one_round_trip(client: Client) -> None:
    definitions = {
        f"q{n}": {"kind": "border", "feed": "stocks", "region": {"box": {"price": [n, n + 1]}}} for n in range(2_000)
    }

    replies = client.put_many(definitions)

    assert replies.keys() == definitions.keys()
    assert {reply.status for reply in replies.values()} == {"accepted"}


@pytest.mark.usefixtures("service")
def test_threads_that_put_the_same_query_each_get_their_own_reply(client: Client) -> None:
    with ThreadPoolExecutor(4) as pool:
        replies = list(pool.map(lambda n: client.put("q", FORTIES if n % 2 else FIFTIES), range(8)))

    assert sorted(reply.control_offset for reply in replies) == list(range(8))


def test_no_reply_says_that_the_command_stays_and_what_to_do(client: Client) -> None:
    with pytest.raises(SetupError, match=r"'q', published at control offset 0.*Is the service running.*bmq serve"):
        client.put("q", FORTIES, wait=0.5)

    assert client.queries()["q"].status == "unanswered"


def test_published_queries_are_read_back_by_an_independent_client(place: Place, client: Client) -> None:
    offsets = client.publish({"a": FORTIES, "b": json.dumps(FIFTIES), "c": None})

    consumer = KafkaConsumer(
        place.topics.control,
        bootstrap_servers=place.servers,
        auto_offset_reset="earliest",
        consumer_timeout_ms=int(LIMIT_SECONDS * 1000),
    )
    records = list(islice(consumer, 3))
    consumer.close()
    assert offsets == {record.key.decode(): record.offset for record in records}
    assert [record.value and json.loads(record.value) for record in records] == [FORTIES, FIFTIES, None]


@pytest.mark.usefixtures("service")
def test_queries_are_the_latest_definitions_each_with_its_reply(client: Client) -> None:
    client.put_many({"gone": FORTIES, "kept": FORTIES, "edited": FORTIES})
    client.put("edited", FIFTIES)
    client.put("bad", {"kind": "border"})
    client.delete("gone")

    queries = client.queries()

    assert {query_id: query.status for query_id, query in queries.items()} == {
        "kept": "accepted",
        "edited": "accepted",
        "bad": "rejected",
    }
    assert json.loads(queries["edited"].definition) == FIFTIES
    assert queries["edited"].reply is not None
    assert queries["edited"].reply.version == queries["edited"].control_offset + 1


def test_an_empty_control_topic_holds_no_queries(client: Client) -> None:
    assert client.queries() == {}


@pytest.mark.usefixtures("service")
def test_events_are_seen_from_the_call_on_even_if_iterated_later(place: Place, client: Client) -> None:
    events = client.events(timeout=LIMIT_SECONDS)
    client.put("forties", FORTIES)
    place.read(stocks={"AAPL": 45.5})

    event = next(events)
    assert isinstance(event, Event)

    assert (event.sign, event.query_id, event.stream_id) == ("+", "forties", "AAPL")
    assert event.value == {"price": 45.5}
    assert event.reason == "first_seen"


@pytest.mark.usefixtures("service")
def test_events_can_be_narrowed_to_a_query_and_a_stream(place: Place, client: Client) -> None:
    client.put_many({"forties": FORTIES, "fifties": FIFTIES})
    place.read(stocks={"A": 45, "B": 55, "C": 55})

    def streams(query_id: str | None = None, stream_id: str | None = None) -> list[tuple[str, str | None]]:
        found = client.events(query_id, stream_id, from_beginning=True, timeout=LIMIT_SECONDS)
        n = 2 if query_id is not None else 1
        return sorted((event.stream_id, event.query_id) for event in islice(found, n) if isinstance(event, Event))

    assert streams(query_id="fifties") == [("B", "fifties"), ("C", "fifties")]
    assert streams(stream_id="C") == [("C", "fifties")]


@pytest.mark.usefixtures("service")
def test_events_end_after_their_time(client: Client) -> None:
    assert list(client.events(from_beginning=True, timeout=0.3)) == []


def test_records_that_are_no_events_are_passed_over(place: Place, client: Client) -> None:
    event = {
        "event_id": "0" * 32, "kind": "border", "query_id": "q", "query_version": 1, "feed": "stocks",
        "stream_id": "A", "sign": "+", "reason": "moved", "event_time": 1, "value": {"price": 1.0},
        "tags": {}, "added_later": True,
    }  # fmt: skip
    producer = KafkaProducer(bootstrap_servers=place.servers)
    for value in (b"not json", b"{}", json.dumps(event).encode()):
        producer.send(place.topics.events, value)
    producer.close()

    events = client.events(from_beginning=True, timeout=LIMIT_SECONDS)

    (stream,) = [event.stream_id for event in islice(events, 1) if isinstance(event, Event)]
    assert stream == "A"


def test_a_missing_topic_is_named_and_not_made(bootstrap_servers: str) -> None:
    absent = TopicsSection(control="bmq-absent.control", replies="bmq-absent.replies")
    with Client(bootstrap_servers, topics=absent) as client:
        for attempt in (
            lambda: client.put("q", FORTIES),
            lambda: client.publish({"q": FORTIES}),
            client.queries,
        ):
            with pytest.raises(SetupError, match=r"no topic 'bmq-absent\.\w+'.*bmq serve"):
                attempt()

    assert not any("bmq-absent" in name for name in Topics({"bootstrap.servers": bootstrap_servers}).partitions())
