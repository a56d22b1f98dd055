"""`bmq query show` and `bmq check-ledger` on a real broker, over records that the tests write themselves."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaProducer
from typer.testing import CliRunner, Result

from bmq.cli import app
from bmq.config import TopicsSection
from bmq.records import Sign
from bmq.wire.membership import render_membership
from tests.crossings import FEED, Row, make_crossings, query

pytestmark = pytest.mark.kafka

DEFINITION = {"kind": "border", "feed": "stocks", "region": {"box": {"price": [40, 50]}}}

Bmq = Callable[..., Result]


@dataclass(frozen=True)
class Place:
    """A broker, and topics on it that nobody else uses."""

    servers: str
    topics: TopicsSection


@pytest.fixture
def place(bootstrap_servers: str, topics: Callable[..., str]) -> Place:
    roles = ("control", "replies", "events", "dead_letter")
    return Place(bootstrap_servers, TopicsSection(**{role: topics(role) for role in roles}))


@pytest.fixture
def membership(topics: Callable[..., str]) -> str:
    return topics("membership", partitions=2, config={"cleanup.policy": "compact"})


@pytest.fixture
def bmq(place: Place, tmp_path: Path) -> Bmq:
    path = tmp_path / "c.toml"

    def run(*arguments: str, **topics: str) -> Result:
        named = place.topics.model_dump(include={"control", "replies", "events", "dead_letter"}) | topics
        path.write_text(
            f'[kafka]\nbootstrap_servers = "{place.servers}"\n[topics]\n'
            + "".join(f'{role} = "{name}"\n' for role, name in named.items())
            + '[feeds.stocks]\ntopic = "stocks"\nstream_id = "symbol"\ndimensions = ["price"]\n'
        )
        return CliRunner().invoke(app, [*arguments, "--config", str(path)])

    return run


Record = tuple[bytes | None, bytes | None]


def write(place: Place, topic: str, records: Sequence[Record]) -> None:
    producer = KafkaProducer(bootstrap_servers=place.servers)
    for key, value in records:
        producer.send(topic, value, key)
    producer.close()


def definition_record(query_id: str, **options: Any) -> Record:
    return query_id.encode(), json.dumps(DEFINITION | options).encode()


def event_record(number: int, sign: str, stream: str = "s", **fields: Any) -> Record:
    event = {
        "event_id": f"{number:032x}",
        "kind": "border",
        "query_id": "q",
        "query_version": 1,
        "feed": "stocks",
        "stream_id": stream,
        "sign": sign,
        "reason": "moved",
        "event_time": number,
        "value": {"price": 45.0},
        "tags": {},
    }
    return stream.encode(), json.dumps(event | fields).encode()


def test_show_lists_who_is_inside_now(bmq: Bmq, place: Place, membership: str) -> None:
    q, other = query("q", 1), query("other", 2)
    rows = [
        Row("b", q, event_time=1_700_000_000_000),
        Row("a", q, event_time=1_700_000_001_000, value=(1.5, 2.0)),
        Row("c", q),
        Row("a", other),
        Row("c", q, Sign.LEFT),
    ]
    messages = render_membership(make_crossings(rows), FEED, topic=membership)
    keys, values = messages.column("key").to_pylist(), messages.column("value").to_pylist()
    write(place, membership, list(zip(keys, values, strict=True)))
    write(place, place.topics.control, [definition_record("q")])

    text = bmq("query", "show", "q", membership=membership).stdout
    shown = json.loads(bmq("query", "show", "q", "--json", membership=membership).stdout)

    assert text.splitlines()[-3:] == [
        "inside now: 2",
        "  a since 2023-11-14 22:13:21.000, entered at x=1.5, y=2",
        "  b since 2023-11-14 22:13:20.000, entered at x=5, y=5",
    ]
    assert [(one["stream_id"], one["since"]) for one in shown["inside"]] == [
        ("a", 1_700_000_001_000),
        ("b", 1_700_000_000_000),
    ]


def test_show_says_how_to_know_who_is_inside_where_nothing_is_written(bmq: Bmq, place: Place) -> None:
    write(place, place.topics.control, [definition_record("q")])

    result = bmq("query", "show", "q")

    assert result.exit_code == 0
    assert 'Set membership = "bmq.membership" under [topics]' in result.stdout
    assert json.loads(bmq("query", "show", "q", "--json").stdout)["inside"] is None


@pytest.mark.parametrize(
    ("kind", "reports"),
    [
        ("transition", "what streams did within a time"),
        ("match", "every reading inside"),
        ("band_join", "which pairs of streams are in band"),
    ],
)
def test_show_says_what_a_query_without_members_reports(bmq: Bmq, place: Place, kind: str, reports: str) -> None:
    write(place, place.topics.control, [definition_record("q", kind=kind)])

    shown = bmq("query", "show", "q").stdout.splitlines()

    assert shown[-1] == f"who is inside: a query of kind {kind} has no members; it reports {reports}."


def test_list_says_what_each_kind_is_over(bmq: Bmq, place: Place) -> None:
    sides = {"left": {"feed": "stocks", "window": "10s"}, "right": {"feed": "quotes", "window": 5}}
    definitions = {
        "b": {"kind": "band_join", "left": "s", "right": "q", "on": {"left": "x", "right": "y"}, "band": [None, 1]},
        "m": DEFINITION | {"kind": "match"},
        "s": {"kind": "select", "feed": "stocks", "any": [{"price": [0, 1]}, {"price": [2, None], "size": [3, 4]}]},
        "w": {"kind": "window_join", **sides, "any": [{"band": [["left.x", "right.y", -1, 1]]}]},
    }
    write(place, place.topics.control, [(name.encode(), json.dumps(one).encode()) for name, one in definitions.items()])

    lines = bmq("query", "list").stdout.splitlines()

    for line, parts in zip(
        lines[1:],
        [
            ("band_join", "s ~ q", "x - y [null, 1]"),
            ("match", "stocks", "price [40, 50]"),
            ("select", "stocks", "price [0, 1] or price [2, null] size [3, 4]"),
            ("window_join", "stocks ~ quotes", 'band [["left.x", "right.y", -1, 1]]'),
        ],
        strict=False,
    ):
        assert [part for part in parts if part not in line] == []


def test_events_finds_joins_by_the_streams_of_either_side(bmq: Bmq, place: Place) -> None:
    sides = {
        side: {"feed": side, "stream_id": stream, "event_time": 1_700_000_000_000, "value": {"price": 1.0}}
        for side, stream in (("left", "a"), ("right", "z"))
    }
    join = {
        "event_id": "1",
        "kind": "window_join",
        "query_id": "q",
        "query_version": 1,
        "event_time": 1_700_000_000_000,
    }
    write(place, place.topics.events, [(b"a", json.dumps(join | sides).encode()), event_record(2, "+", "z")])

    def found(stream: str) -> list[str]:
        arguments = ("events", "--from-beginning", "--timeout", "3", "--stream", stream)
        return [line.split(" ", 2)[2] for line in bmq(*arguments).stdout.splitlines()]

    of_join = "a ~ z satisfy q at price=1 ~ price=1"
    assert found("a") == [of_join]
    assert sorted(found("z")) == [of_join, "z entered q at price=45 (moved)"]


def test_show_says_that_a_membership_topic_is_not_there(bmq: Bmq, place: Place) -> None:
    write(place, place.topics.control, [definition_record("q")])

    result = bmq("query", "show", "q", membership="bmq.nowhere")

    assert result.exit_code == 1
    assert "has no topic 'bmq.nowhere'" in result.stderr


def test_a_whole_ledger_exits_with_0(bmq: Bmq, place: Place) -> None:
    write(place, place.topics.events, [event_record(1, "+"), event_record(2, "-"), event_record(3, "+", "t")])

    result = bmq("check-ledger", "--from-beginning")

    assert (result.exit_code, result.stdout) == (0, "3 events of 2 (query, stream) pairs: 0 faults, 0 repeats\n")


def test_a_broken_ledger_exits_with_1_and_names_query_and_stream(bmq: Bmq, place: Place) -> None:
    write(place, place.topics.events, [event_record(1, "+"), event_record(2, "+"), event_record(2, "+")])

    result = bmq("check-ledger")

    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        "broken: feed stocks, query q, stream s: + behind +, at event time 2",
        f"repeated: {place.topics.events}: event {2:032x} of stream s at event time 2 came again",
        "2 events of 1 (query, stream) pairs: 1 faults, 1 repeats",
    ]
    assert json.loads(bmq("check-ledger", "--json").stdout)["is_whole"] is False


@pytest.mark.parametrize(
    ("delivery", "options", "code"),
    [
        ("at_least_once", (), 0),
        ("at_least_once", ("--strict",), 1),
        ("exactly_once", (), 1),
    ],
)
def test_repeats_fail_unless_the_delivery_allows_them(
    bmq: Bmq, place: Place, monkeypatch: pytest.MonkeyPatch, delivery: str, options: tuple[str, ...], code: int
) -> None:
    write(place, place.topics.events, [event_record(1, "+"), event_record(1, "+"), event_record(2, "-")])
    monkeypatch.setenv("BMQ_JOB__DELIVERY", delivery)

    result = bmq("check-ledger", *options)

    assert result.exit_code == code
    assert "0 faults, 1 repeats" in result.stdout


def test_a_first_minus_is_broken_only_from_the_beginning(bmq: Bmq, place: Place) -> None:
    write(place, place.topics.events, [event_record(1, "-")])

    assert bmq("check-ledger").exit_code == 0
    result = bmq("check-ledger", "--from-beginning")
    assert result.exit_code == 1
    assert "begins with -" in result.stdout


def test_topics_that_queries_name_are_checked_too(bmq: Bmq, place: Place, topics: Callable[..., str]) -> None:
    own = topics("own")
    write(
        place,
        place.topics.control,
        [
            definition_record("q", output_topic=own),
            definition_record("r", output_topic="bmq.nowhere"),
            (b"x", b"no JSON"),
        ],
    )
    write(place, place.topics.events, [event_record(1, "+")])
    write(place, own, [event_record(2, "-", query_version=2), event_record(3, "-", query_version=2)])

    result = bmq("check-ledger", "--from-beginning")
    assert result.exit_code == 1
    assert result.stdout.splitlines()[0] == "broken: feed stocks, query q, stream s: - behind -, at event time 3"
    assert bmq("check-ledger", "--topic", place.topics.events).exit_code == 0


def test_the_doctor_looks_at_the_clock_and_the_membership_topic(
    bmq: Bmq, topics: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BMQ_FEEDS__STOCKS__IDLE_ADVANCE", "30s")
    compacted, other = topics("compacted", config={"cleanup.policy": "compact"}), topics("other")

    well = bmq("doctor", membership=compacted, clock=other).stdout
    ill = bmq("doctor", membership=other, clock="bmq.no-clock-yet").stdout

    assert f"ok    topics.membership: {compacted}, 1 partitions, compacted" in well
    assert f"ok    topics.clock: {other}" in well
    assert f"warn  topics.membership: {other} is not compacted" in ill
    assert "warn  topics.clock: bmq.no-clock-yet is not there. The service makes it at its start" in ill
