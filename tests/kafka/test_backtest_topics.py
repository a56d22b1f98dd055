"""`bmq backtest` and `bmq forecast` from a span of a topic, and to a topic."""

import json
import uuid
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # re-exported unsaid
from typer.testing import CliRunner, Result

from bmq.cli import app
from bmq.records import Feed, Format
from tests.kafka_records import read_all
from tests.pure_service import RECORD_TIME, PureService
from tests.transactions import LIMIT_SECONDS

pytestmark = pytest.mark.kafka

REGION = {"box": {"x": [0, 10]}}
QUERIES: dict[str, Any] = {
    "plain": {"kind": "border", "feed": "line", "region": REGION},
    "stays": {"kind": "border", "feed": "line", "region": REGION, "stay_for": "2s"},
    "elsewhere": {"kind": "border", "feed": "line", "region": {"box": {"x": [5, None]}}, "output_topic": "bmq.live"},
    "match": {"kind": "match", "feed": "line", "region": {"box": {"x": [9, 10]}}},
}
MINUTES = 6
AT_ONCE = 50  # records of a batch of the service: in order of time, the batches change no event
Record = tuple[int, int, bytes, bytes]  # partition, timestamp, key, value


class Place:
    """Topics and a configuration of this test's own."""

    def __init__(self, servers: str) -> None:
        self.servers = servers
        self.topic = f"readings-{uuid.uuid4().hex[:8]}"
        self.events = f"{self.topic}-events"
        Path("bmq.toml").write_text(
            f'[kafka]\nbootstrap_servers = "{servers}"\n[topics]\nevents = "{self.topic}-live"\n'
            f'[feeds.line]\ntopic = "{self.topic}"\nformat = "csv"\nstream_id = "@key"\ndimensions = ["x"]\n'
        )
        Path("queries.json").write_text(json.dumps(QUERIES))
        self.make(self.topic)

    def make(self, topic: str, **config: str) -> None:
        admin = AdminClient({"bootstrap.servers": self.servers})
        for future in admin.create_topics([NewTopic(topic, 2, 1, config=config)]).values():
            future.result(LIMIT_SECONDS)

    def send(self, records: Sequence[Record], topic: str | None = None) -> None:
        producer = Producer({"bootstrap.servers": self.servers, "enable.idempotence": "true"})
        for partition, time, key, value in records:
            producer.produce(topic or self.topic, value, key, partition, timestamp=time)
        assert producer.flush(LIMIT_SECONDS) == 0

    def run(self, command: str, *arguments: str) -> Result:
        usual = ["--config", "bmq.toml", "--queries", "queries.json", "--feed", "line", "--topic", self.topic]
        return CliRunner().invoke(app, [command, *usual, *arguments])


@pytest.fixture
def place(bootstrap_servers: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.chdir(tmp_path)
    return Place(bootstrap_servers)


def history() -> list[Record]:
    """Return two streams, one in each partition, that cross every second; every fifth record is not a reading."""
    records: list[Record] = []
    for second in range(MINUTES * 60):
        x = b"far" if second % 5 == 4 else str((second * 7) % 23 - 5).encode()
        records.append((second % 2, RECORD_TIME + second * 1000, b"ab"[second % 2 : second % 2 + 1], x))
    return records


def events_of_the_service(records: Sequence[Record]) -> list[dict[str, Any]]:
    """Return the events of the same records in the service; its feed has time and key as cells."""
    feed = Feed("line", "topic-of-line", "id", ("x",), "ts", Format.CSV)
    service = PureService({"line": feed}, 2)
    service.run_batch([(query_id, json.dumps(query).encode()) for query_id, query in QUERIES.items()], {})
    lines = [b"%s,%d,%s" % (key, time, value) for _, time, key, value in records]
    for first in range(0, len(lines), AT_ONCE):
        service.run_batch([], {"line": lines[first : first + AT_ONCE]})
    return service.events


def in_order(events: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(events, key=lambda event: str(event["event_id"]))


def span(records: Sequence[Record], begin: int, end: int) -> list[Record]:
    return [record for record in records if begin <= record[1] - RECORD_TIME < end]


def test_a_span_by_times_gives_the_events_of_the_service_to_a_topic_and_a_file(place: Place) -> None:
    records = history()
    place.send(records)
    ends = ["--from", str(RECORD_TIME + 60_000), "--to", "2023-11-14T22:18:20Z"]  # 1 and 5 minutes after the first

    result = place.run("backtest", *ends, "--out-topic", place.events, "--out", "e.parquet")

    assert result.exit_code == 0, result.output
    inside = span(records, 60_000, 300_000)
    written = list(read_all(place.servers, place.events))
    events = [json.loads(record.value) for record in written]
    assert in_order(events) == in_order(events_of_the_service(inside))
    assert [record.key.decode() for record in written] == [event["stream_id"] for event in events]
    assert dict(written[0].headers).keys() == {"event_id", "kind", "query_id"}
    by_stream = defaultdict(list)
    for event in events:
        by_stream[event["stream_id"], event["query_id"]].append(event["event_time"])
    assert all(times == sorted(times) for times in by_stream.values())
    assert sorted(pq.read_table("e.parquet")["event_id"].to_pylist()) == [one["event_id"] for one in in_order(events)]
    n_bad = sum(value == b"far" for _, _, _, value in inside)
    assert f"{len(inside) - n_bad:,} readings in" in result.stdout
    assert f"{n_bad} records (wrong_type) are not readings" in result.stdout
    assert f"{len(events):,} events of 4 queries, in e.parquet and topic {place.events}" in result.stdout


def test_a_span_by_offsets_and_the_whole_topic(place: Place) -> None:
    records = history()
    place.send(records)

    some = place.run("backtest", "--from", "0:100,1:90", "--to", "1:170,0:150")
    forecast = place.run("forecast", "--json")

    inside = [r for p, (begin, end) in enumerate([(100, 150), (90, 170)]) for r in of_partition(records, p)[begin:end]]
    n_readings = sum(value != b"far" for _, _, _, value in inside)
    assert f"{n_readings:,} readings in" in some.stdout, some.output
    n_bad = len(inside) - n_readings
    assert f"{n_bad} records (wrong_type) are not readings" in some.stdout
    counts = {row["query_id"]: row["events"] for row in map(json.loads, forecast.stdout.splitlines())}
    events = events_of_the_service(records)
    assert counts == {query_id: sum(event["query_id"] == query_id for event in events) for query_id in QUERIES}


def of_partition(records: Sequence[Record], partition: int) -> list[Record]:
    return [record for record in records if record[0] == partition]


def test_a_span_behind_all_records_is_empty(place: Place) -> None:
    place.send(history())

    result = place.run("backtest", "--from", "2040-01-01T00:00:00Z")

    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("0 readings in")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--from", "0:5"], "--from names the partitions 0, but topic"),
        (["--from", "0:5,0:6"], "names a partition twice"),
        (["--from", "0:0,1:700"], "--from is offset 700 of partition 1"),
        (["--from", "0:5,1:5", "--to", "0:6,1:4"], "Partition 1 of topic"),
        (["--to", "noon"], '--to is "noon"'),
        (["--topic", "nowhere"], "There is no topic 'nowhere'"),
        (["in.parquet"], "one of the two"),
        (["--stream-id", "id"], "an option for files"),
        (["--out-topic", "{topic}"], "which the service or this run uses for something else"),
        (["--out-topic", "{topic}-live"], "which the service or this run uses for something else"),
        (["--out-topic", "{topic}-full"], "which has records already"),
    ],
)
def test_what_it_cannot_do_is_refused(place: Place, arguments: list[str], message: str) -> None:
    records = history()[:20]
    place.send(records)
    if "{topic}-full" in arguments:
        place.make(f"{place.topic}-full")
        place.send(records[:1], f"{place.topic}-full")

    result = place.run("backtest", *(argument.format(topic=place.topic) for argument in arguments))

    assert result.exit_code in (1, 2)
    assert message in " ".join(result.stderr.replace("│", " ").split())


def test_an_event_that_kafka_does_not_take_ends_the_run(place: Place) -> None:
    place.send(history()[:20])
    place.make(place.events, **{"max.message.bytes": "100"})

    result = place.run("backtest", "--out-topic", place.events)

    assert result.exit_code == 1
    assert f"Kafka did not take a message for topic {place.events!r}" in result.stderr
    assert "name a new --out-topic" in result.stderr
    assert "next start" not in result.stderr


def test_the_messages_have_the_form_of_the_configuration(place: Place) -> None:
    text = Path("bmq.toml").read_text()
    form = '[topics]\nlayout = "reading"\nevent_format = "cloudevents-structured"\nevent_source = "/here"\n'
    Path("bmq.toml").write_text(text.replace("[topics]\n", form))
    place.send(history()[:60])

    result = place.run("backtest", "--out-topic", place.events)

    assert result.exit_code == 0, result.output
    messages = [json.loads(record.value) for record in read_all(place.servers, place.events)]
    assert {message["source"] for message in messages} == {"/here"}
    assert any("entered" in message["data"] or "left" in message["data"] for message in messages)


def test_a_topic_is_decoded_as_the_service_decodes_it(place: Place) -> None:
    """Lists of readings, constants and the name of the topic belong to the feed and not to the format of a record."""
    text = Path("bmq.toml").read_text().partition("[feeds.line]")[0]
    Path("bmq.toml").write_text(
        f'{text}[feeds.line]\ntopics = ["{place.topic}-other", "{place.topic}"]\nstream_id = "id"\n'
        'event_time = "points.ts"\ndimensions = ["points.x"]\nreadings = "points"\n'
        'constants = { fleet = "north" }\ntopic_attribute = "from"\n'
    )
    query = {"kind": "border", "feed": "line", "region": {"box": {"points.x": [0, 10]}}}
    where = {
        "all": {"fleet": "north", "from": place.topic},
        "south": {"fleet": "south"},
        "other": {"from": "elsewhere"},
    }
    queries = {query_id: {**query, "where": one} for query_id, one in where.items()}
    Path("queries.json").write_text(json.dumps(queries))
    points = [{"x": x, "ts": RECORD_TIME + i * 1000} for i, x in enumerate([5, 50, 5])]
    place.send([(0, RECORD_TIME, b"", json.dumps({"id": "a", "points": points}).encode())])

    result = place.run("backtest", "--out-topic", place.events)
    refused = place.run("backtest", "--out-topic", f"{place.topic}-other")

    assert result.exit_code == 0, result.output
    assert "3 readings in" in result.stdout
    events = [json.loads(record.value) for record in read_all(place.servers, place.events)]
    assert [(event["sign"], event["query_id"], event["stream_id"]) for event in events] == [
        ("+", "all", "a"),
        ("-", "all", "a"),
        ("+", "all", "a"),
    ]
    assert refused.exit_code == 1
    assert "which the service or this run uses for something else" in refused.stderr
