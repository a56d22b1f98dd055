"""Topics with transactions, as the clients of this process read them: committed records only, and never a wait."""

from collections.abc import Callable

import pytest

from bmq.client import Client
from bmq.config import TopicsSection
from bmq.kafka_io.connect import Options
from bmq.kafka_io.topic_reader import Start, TopicReader
from bmq.kafka_io.topics import Topics
from tests.transactions import Transaction

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(120)]

MakeTopic = Callable[..., str]


@pytest.fixture
def options(bootstrap_servers: str) -> Options:
    return {"bootstrap.servers": bootstrap_servers}


def write(servers: str, topic: str, *values: str) -> Transaction:
    return Transaction(servers, [(topic, "key", value) for value in values])


def read(options: Options, topic: str) -> list[bytes | None]:
    with TopicReader(options, topic, Start.BEGINNING) as reader:
        return [message.value() for message in reader.to_end()]


def test_only_committed_records_are_read_and_a_marker_is_an_end(
    bootstrap_servers: str, options: Options, topics: MakeTopic
) -> None:
    topic = topics()
    write(bootstrap_servers, topic, "void").abort()
    assert read(options, topic) == []  # nothing but an aborted record and its marker

    write(bootstrap_servers, topic, "counts").commit()
    assert read(options, topic) == [b"counts"]

    write(bootstrap_servers, topic, "void", "void, too").abort()
    assert read(options, topic) == [b"counts"]


def test_an_open_transaction_is_the_end_until_it_is_committed(
    bootstrap_servers: str, options: Options, topics: MakeTopic
) -> None:
    topic = topics()
    write(bootstrap_servers, topic, "first").commit()
    still_open = write(bootstrap_servers, topic, "second")

    assert read(options, topic) == [b"first"]
    still_open.commit()
    assert read(options, topic) == [b"first", b"second"]


def test_a_reader_that_starts_at_the_end_sees_a_transaction_that_was_open_then(
    bootstrap_servers: str, options: Options, topics: MakeTopic
) -> None:
    topic = topics()
    still_open = write(bootstrap_servers, topic, "open at the start")

    with TopicReader(options, topic, Start.END) as reader:
        still_open.commit()
        write(bootstrap_servers, topic, "later").commit()

        values = [message.value() for message in reader.to_end()]

    assert values[-1] == b"later"


def test_the_option_reads_uncommitted_records_too(bootstrap_servers: str, options: Options, topics: MakeTopic) -> None:
    topic = topics()
    write(bootstrap_servers, topic, "void").abort()

    assert read({**options, "isolation.level": "read_uncommitted"}, topic) == [b"void"]


def test_a_topic_ends_where_its_open_transaction_begins(
    bootstrap_servers: str, options: Options, topics: MakeTopic
) -> None:
    topic = topics()
    write(bootstrap_servers, topic, "first").commit()
    still_open = write(bootstrap_servers, topic, "second")

    assert Topics(options).end_offsets([topic]) == {topic: {0: 2}}  # the record and its marker
    uncommitted = Topics({**options, "isolation.level": "read_uncommitted"})
    assert uncommitted.end_offsets([topic]) == {topic: {0: 3}}
    still_open.abort()
    assert Topics(options).end_offsets([topic]) == {topic: {0: 4}}


def test_the_client_lists_no_query_that_was_aborted(bootstrap_servers: str, topics: MakeTopic) -> None:
    names = TopicsSection(control=topics("control"), replies=topics("replies"))
    Transaction(bootstrap_servers, [(names.control, "kept", "{}")]).commit()
    Transaction(bootstrap_servers, [(names.control, "void", "{}"), (names.control, "kept", None)]).abort()

    with Client(bootstrap_servers, topics=names) as client:
        assert client.queries().keys() == {"kept"}
