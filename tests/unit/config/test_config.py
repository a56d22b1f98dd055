"""The configuration: what is taken, what is refused, and what a user is shown."""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException, Producer
from pydantic import ValidationError

from bmq.config import Config, load_config
from bmq.config.reference import reference
from bmq.errors import ConfigError
from bmq.records import Feed, Format, IndexKind, TimeUnit

ROOT = Path(__file__).parents[3]
LINE = """
[feeds.line]
topic = "line"
stream_id = "id"
dimensions = ["x"]
"""

Load = Callable[..., Config]

# What a configuration says of a feed that says nothing itself.
DEFAULTS: dict[str, Any] = {"max_future_ms": 3_600_000, "event_time_unit": None}


@pytest.fixture(autouse=True)
def _no_options_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.startswith("BMQ_") and "__" in name:
            monkeypatch.delenv(name)


@pytest.fixture
def load(tmp_path: Path) -> Load:
    def from_text(text: str = "", feeds: str = LINE) -> Config:
        path = tmp_path / "bmq.toml"
        path.write_text(feeds + text)
        return load_config(path)

    return from_text


def faults(load: Load, text: str = "", feeds: str = LINE) -> list[str]:
    with pytest.raises(ConfigError) as raised:
        load(text, feeds)
    first, *lines, last = str(raised.value).splitlines()
    assert re.search(r"bmq.toml: (1 fault|\d+ faults)$", first)
    assert last == "Every option is in docs/configuration.md."
    return [line.removeprefix("  - ") for line in lines]


def test_a_feed_is_all_that_must_be_written(load: Load) -> None:
    config = load()

    assert config.feed_records() == {"line": Feed("line", "line", "id", ("x",), **DEFAULTS)}
    assert config.kafka.bootstrap_servers is None
    assert config.topics.control == "bmq.control"
    assert config.topics.dead_letter == "bmq.dead-letter"
    assert (config.job.shards, config.job.trigger) == (4, "0 seconds")
    assert config.job.max_readings_per_batch == 400_000
    assert config.metrics.port == 9108


def test_a_feed_record_has_everything_that_the_other_layers_need(load: Load) -> None:
    config = load('event_time = "ts"\nformat = "csv"\nattributes = ["group"]\nindex = "scan"')

    assert config.feed_records()["line"] == Feed(
        "line",
        "line",
        "id",
        ("x",),
        event_time="ts",
        format=Format.CSV,
        attributes=("group",),
        index=IndexKind.SCAN,
        **DEFAULTS,
    )


@pytest.mark.parametrize("unit", TimeUnit)
def test_the_unit_of_time_and_no_limit_of_the_future_reach_the_other_layers(load: Load, unit: TimeUnit) -> None:
    feed = load(f'event_time_unit = "{unit}"\nmax_future = "off"').feed_records()["line"]

    assert (feed.event_time_unit, feed.max_future_ms) == (unit, None)


def test_durations_space_and_join_reach_the_other_layers(load: Load) -> None:
    config = load(
        """
        [feeds.globe]
        topic = "globe"
        stream_id = "id"
        dimensions = ["lon", "lat"]
        space = "lonlat"
        max_lateness = "250ms"
        stream_ttl = "1h"
        idle_advance = "30s"
        max_future = "2d"
        event_time_unit = "ns"
        join = true
        """
    )

    assert config.feed_records()["globe"] == Feed(
        "globe",
        "globe",
        "id",
        ("lon", "lat"),
        lonlat=True,
        max_lateness_ms=250,
        stream_ttl_ms=3_600_000,
        idle_advance_ms=30_000,
        max_future_ms=172_800_000,
        join=True,
        event_time_unit=TimeUnit.NS,
    )


@pytest.mark.parametrize("name", ["local.toml", "docker.toml"])
def test_the_configurations_in_the_repository_load(name: str) -> None:
    config = load_config(ROOT / "config" / name)

    assert config.feeds.keys() >= {"stocks", "vehicles"}
    assert (config.kafka.bootstrap_servers is None) == (name == "local.toml")


def test_nothing_can_be_changed_afterwards(load: Load) -> None:
    config = load()

    with pytest.raises(ValidationError):
        config.job.shards = 8  # type: ignore[misc]


def test_the_address_of_an_own_broker_is_put_in_as_a_copy(load: Load) -> None:
    config = load('[kafka.options]\n"client.id" = "me"')

    placed = config.with_broker("127.0.0.1:5")

    assert placed.kafka.client_options() == {"bootstrap.servers": "127.0.0.1:5", "client.id": "me"}
    assert config.kafka.bootstrap_servers is None
    with pytest.raises(ConfigError, match=r"BMQ_KAFKA__BOOTSTRAP_SERVERS"):
        config.kafka.client_options()


# The environment


def test_the_environment_wins_over_the_file(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BMQ_JOB__SHARDS", "8")
    monkeypatch.setenv("BMQ_FEEDS__LINE__TOPIC", "other")
    monkeypatch.setenv("BMQ_FEEDS__LINE__DIMENSIONS", '["x", "y"]')

    config = load("[job]\nshards = 2\ncheckpoint = 'here'")

    assert (config.job.shards, config.job.checkpoint) == (8, "here")
    assert config.feed_records()["line"] == Feed("line", "other", "id", ("x", "y"), **DEFAULTS)


def test_a_feed_can_come_from_the_environment_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BMQ_FEEDS__S17_LINE__TOPIC", "1.10")
    monkeypatch.setenv("BMQ_FEEDS__S17_LINE__STREAM_ID", "@key")
    monkeypatch.setenv("BMQ_FEEDS__S17_LINE__DIMENSIONS", '["x"]')

    assert load_config(None).feed_records() == {"s17_line": Feed("s17_line", "1.10", "@key", ("x",), **DEFAULTS)}


def test_a_misspelt_section_in_a_variable_is_a_fault(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BMQ_JBO__SHARDS", "8")

    assert faults(load) == ["environment variable BMQ_JBO__SHARDS: there is no section 'jbo'; did you mean BMQ_JOB__…?"]


def test_variables_that_are_no_options_are_left_alone(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BMQ_TEST_BOOTSTRAP", "127.0.0.1:9092")

    assert load().kafka.bootstrap_servers is None


def test_a_fault_names_the_variable_that_brought_it(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BMQ_JOB__SHARDS", "many")

    (fault,) = faults(load)

    assert fault.startswith('job.shards (from BMQ_JOB__SHARDS) = "many": must be a valid integer')


@pytest.mark.parametrize(("variable", "text"), [("BMQ_KAFKA__OPTIONS", "{client.id"), ("BMQ_JOB", "fast")])
def test_a_variable_for_a_whole_table_must_be_json(
    load: Load, monkeypatch: pytest.MonkeyPatch, variable: str, text: str
) -> None:
    monkeypatch.setenv(variable, text)

    with pytest.raises(ConfigError, match=f"{variable[:9]}.* no JSON"):
        load()


# What is refused


def test_every_fault_is_shown_at_once(load: Load) -> None:
    shown = faults(
        load,
        """
        [feeds.plane]
        topic = "line"
        stream_id = ""
        dimensions = ["x", "y"]
        max_lateness = 5
        [job]
        shards = 0
        trigger = "often"
        sharts = 5
        [topics]
        events = "a b"
        """,
    )

    assert [fault.partition(":")[0].partition(" = ")[0] for fault in shown] == [
        "topics.events",
        "feeds.plane.stream_id",
        "feeds.plane.max_lateness",
        "job.shards",
        "job.trigger",
        "job.sharts",
        "feeds.plane.topic",
    ]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('[kafka]\nbootstrap_server = "a:1"', 'did you mean "bootstrap_servers"?'),
        ("[feed.x]", 'feed: there is no such option; did you mean "feeds"?'),
        ('event_tim = "ts"', 'feeds.line.event_tim: there is no such option; did you mean "event_time"?'),
        (
            "[metrics]\nzebra = 1",
            "metrics.zebra: there is no such option; known here: certificate, host, key, password, port, user",
        ),
    ],
)
def test_an_unknown_option_is_answered_with_the_nearest_known_one(load: Load, text: str, shown: str) -> None:
    (fault,) = faults(load, text)

    assert shown in fault


@pytest.mark.parametrize(
    "text",
    [
        'format = "json"\nspace = "plane"\nmax_lateness = "0s"\njoin = false',
        "join = true",
        'max_lateness = "0ms"',
        'max_future = "0s"',
        'max_future = "off"',
        'event_time_unit = "s"',
        '[topics]\nmembership = "bmq.membership"',
        '[job]\ntrigger = "1 second"\ndelivery = "at_least_once"',
        '[job]\ntrigger = "available_now"\nshards = 1024\nstarting_offsets = "earliest"',
        '[topics]\nkey = "query_id"',
        '[topics]\nlayout = "reading"',
        "[metrics]\nport = 0",
        'index = "auto"',
        'index = "region_segments"',
        '[kafka]\nbootstrap_servers = "a:1,[::1]:9092"',
    ],
)
def test_what_the_documents_name_is_taken(load: Load, text: str) -> None:
    load(text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('max_lateness = "5 minutes"', 'feeds.line.max_lateness = "5 minutes": a duration is a whole number'),
        ("max_lateness = 5", "feeds.line.max_lateness = 5: a duration is a whole number with ms, s, m, h or d; write"),
        ('max_future = "-1s"', 'feeds.line.max_future = "-1s": a duration is a whole number'),
        ('max_future = "OFF"', '"off" sets no limit'),
        ("max_future = false", "feeds.line.max_future = false: a duration is"),
        ('event_time_unit = "sec"', "feeds.line.event_time_unit = \"sec\": must be 's', 'ms', 'us' or 'ns'"),
        ('max_future = "3652060d"', 'feeds.line.max_future = "3652060d": a duration is at most 3652059d'),
        ('stream_ttl = "0s"', 'feeds.line.stream_ttl = "0s": this duration must be above zero'),
        ('idle_advance = "0m"', 'feeds.line.idle_advance = "0m": this duration must be above zero'),
        (
            'space = "lonlat"',
            'feeds.line: space = "lonlat" is for two dimensions, longitude and latitude, and not for 1',
        ),
        ('space = "globe"', "feeds.line.space = \"globe\": must be 'plane' or 'lonlat'"),
        ('join = "maybe"', 'feeds.line.join = "maybe": must be a valid boolean'),
        ("[job]\nshards = 1025", "job.shards = 1025: must be less than or equal to 1024"),
        ("[job]\nshards = true", "job.shards = true: a whole number is needed"),
        ('[job]\ntrigger = "1 minute"', 'job.trigger = "1 minute": write "N seconds"'),
        ('[job]\nstarting_offsets = "newest"', "must be 'latest' or 'earliest'"),
        ("[job]\nmax_readings_per_batch = 0", "must be greater than or equal to 1"),
        ('[topics]\nevents = ".."', 'topics.events = "..": a topic has 1 to 249'),
        (f'[topics]\nevents = "{"a" * 250}"', "a topic has 1 to 249"),
        ('[topics]\nkey = "query_id"\nlayout = "reading"', "topics: with layout"),
        (
            '[kafka]\nbootstrap_servers = "somewhere"',
            'kafka.bootstrap_servers = "somewhere": write "host:port"',
        ),
        ('index = "grid"', "feeds.line.index = \"grid\": must be 'auto', 'region_segments'"),
        ('index = "nd_bmq"', 'feeds.line: index = "nd_bmq" is not for 1 dimension; take one of "auto", "region_'),
        ('[kafka.options]\n"group.id" = "g"', "kafka.options: not to be set here: group.id (leave it out"),
        (
            '[kafka.options]\n"isolation.level" = "committed"',
            'kafka.options: isolation.level is \'committed\': write "read_committed" or "read_uncommitted"',
        ),
    ],
)
def test_a_value_against_its_rule_is_shown_with_the_rule(load: Load, text: str, shown: str) -> None:
    (fault,) = faults(load, text)

    assert shown in fault


def test_a_section_is_a_table(load: Load) -> None:
    (fault,) = faults(load, LINE, feeds="job = 5")

    assert fault == "job = 5: write a table with the options of this section"


@pytest.mark.parametrize(
    ("feed", "shown"),
    [
        ('stream_id = "id"\ndimensions = []', "feeds.line.dimensions = []: name at least one"),
        ('stream_id = "id"\ndimensions = "x"', 'feeds.line.dimensions = "x": write a list'),
        ('stream_id = "id"\ndimensions = ["x", "x"]', "feeds.line: x stands more than once"),
        ('stream_id = "x"\ndimensions = ["x"]', "feeds.line: x stands more than once"),
        ('stream_id = "id"\nevent_time = "x"\ndimensions = ["x"]', "feeds.line: x stands more than once"),
        ('stream_id = "id"\nattributes = ["x"]\ndimensions = ["x"]', "feeds.line: x stands more than once"),
        ('dimensions = ["x"]', "feeds.line.stream_id is missing; set it or BMQ_FEEDS__LINE__STREAM_ID"),
    ],
)
def test_each_field_of_a_feed_has_one_role(load: Load, feed: str, shown: str) -> None:
    (fault,) = faults(load, feed, feeds='[feeds.line]\ntopic = "line"\n')

    assert fault.startswith(shown)


@pytest.mark.parametrize("name", ["Line", "a__b", "_a", "a_", "'a.b'"])
def test_a_feed_has_a_name_that_a_variable_can_hold(load: Load, name: str) -> None:
    shown = faults(load, feeds=LINE.replace("feeds.line", f"feeds.{name}"))

    assert any("a feed's name has" in fault for fault in shown)


def test_without_a_feed_nothing_starts(load: Load) -> None:
    (fault,) = faults(load, feeds="")

    assert fault.startswith("feeds: name at least one; add a table [feeds.NAME]")


@pytest.mark.parametrize(
    "topic", ["line", "bmq.control", "bmq.replies", "bmq.events", "bmq.dead-letter", "bmq.clock", "bmq_events"]
)
def test_no_two_roles_share_a_topic(load: Load, topic: str) -> None:
    (fault,) = faults(load, LINE.replace("feeds.line", "feeds.other").replace('"line"', f'"{topic}"'))

    assert fault.startswith(f'feeds.other.topic = "{topic}": ')
    assert fault.endswith("; choose another")


def test_the_marker_topic_is_no_other_topic(load: Load) -> None:
    (fault,) = faults(load, '[topics]\nmarkers = "bmq.events"')

    assert fault == 'topics.markers = "bmq.events": topics.events is "bmq.events"; choose another'


def test_the_membership_topic_is_no_other_topic(load: Load) -> None:
    (fault,) = faults(load, '[topics]\nmembership = "bmq.events"')

    assert fault == 'topics.membership = "bmq.events": topics.events is "bmq.events"; choose another'


@pytest.mark.parametrize(
    ("content", "shown"), [(b"[feeds", "no TOML"), (b"\xff", "no TOML"), (None, "No such file or directory")]
)
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, content: bytes | None, shown: str) -> None:
    path = tmp_path / "bmq.toml"
    if content is not None:
        path.write_bytes(content)

    with pytest.raises(ConfigError, match=f"bmq.toml: {shown}"):
        load_config(path)


# Kafka options


def test_an_option_of_kafka_goes_to_the_client_as_it_is(load: Load) -> None:
    kafka = load('[kafka]\nbootstrap_servers = "a:1"\n[kafka.options]\n"fetch.max.bytes" = 5').kafka

    assert kafka.client_options() == {"bootstrap.servers": "a:1", "fetch.max.bytes": "5"}


@pytest.mark.parametrize(
    "text",
    ['[kafka.options]\n"a.b.c" = true', "[kafka.options]\na.b.c = true", "[kafka.options.a]\nb.c = 'true'"],
)
def test_a_dotted_option_may_be_quoted_or_not(load: Load, text: str) -> None:
    assert load(text).kafka.options == {"a.b.c": "true"}


def test_an_option_of_kafka_in_the_environment_has_underscores_for_dots(
    load: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BMQ_KAFKA__OPTIONS__SASL_PASSWORD", "007.10")
    monkeypatch.setenv("BMQ_KAFKA__OPTIONS__DEBUG", "all")

    config = load('[kafka.options]\n"sasl.password" = "old"\n"client.id" = "me"')

    assert config.kafka.options == {"sasl.password": "007.10", "client.id": "me", "debug": "all"}


def test_options_of_kafka_may_be_one_variable(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BMQ_KAFKA__OPTIONS", '{"client.id": "me"}')

    assert load().kafka.options == {"client.id": "me"}


def test_a_secret_is_never_shown(load: Load) -> None:
    names = ("sasl.password", "sasl.oauthbearer.client.secret", "ssl.key.password", "ssl.key.pem")
    secrets = {name: f"s{i}" for i, name in enumerate(names, start=1)}
    text = "[kafka.options]\n" + "\n".join(f'"{name}" = "{value}"' for name, value in secrets.items())

    config = load(text)
    shown = faults(load, text + '\n"group.id" = "g"')

    for text in (repr(config), str(config), repr(config.kafka), "\n".join(shown)):
        assert not re.search(r"\bs[1-4]\b", text)
    assert config.kafka.options == secrets


@pytest.mark.parametrize(
    ("option", "way_out"),
    [
        ("sasl.jaas.config", "set sasl.username and sasl.password"),
        ("ssl.truststore.location", "set ssl.ca.location"),
        ("ssl.keystore.type", "leave it out"),
    ],
)
def test_an_option_of_javas_clients_is_refused_with_what_stands_for_it(load: Load, option: str, way_out: str) -> None:
    assert not _librdkafka_knows(option)
    (fault,) = faults(load, f'[kafka.options]\n"{option}" = "x"')
    assert option in fault
    assert way_out in fault


def test_librdkafka_knows_the_options_that_the_reference_says() -> None:
    (names,) = re.findall(r"- \*\*SASL\*\*: (.*?)\n- ", reference(), re.DOTALL)

    options = re.findall(r"`([a-z][a-z.]+)`", names)

    assert len(options) > 5
    assert [name for name in options if not _librdkafka_knows(name)] == []


def _librdkafka_knows(option: str) -> bool:
    try:
        Producer({option: "-"})
    except KafkaException as error:
        # A bad value or a missing file is another error: the name was known.
        return not re.search(r"No such configuration property|Java JAAS|not supported", str(error))
    return True


AVRO_FIELDS: list[dict[str, Any]] = [
    {"name": "id", "type": "string"},
    {"name": "ts", "type": ["null", {"type": "long", "logicalType": "timestamp-micros"}]},
    {"name": "at", "type": "long"},
    {"name": "day", "type": {"type": "int", "logicalType": "date"}},
    {"name": "raw", "type": "bytes"},
    {"name": "tags", "type": {"type": "array", "items": "string"}},
    {"name": "location", "type": {"type": "record", "name": "Location", "fields": [{"name": "lat", "type": "double"}]}},
]


def load_avro(
    load: Load, tmp_path: Path, options: str, fields: list[dict[str, Any]] | None = None
) -> Callable[[], Config]:
    path = tmp_path / "reading.avsc"
    path.write_text(json.dumps({"type": "record", "name": "Reading", "fields": fields or AVRO_FIELDS}))
    table = f'[feeds.line]\ntopic = "line"\nformat = "avro"\nschema_file = "{path}"\n'
    return lambda: load("", table + options)


def test_the_schema_of_an_avro_feed_is_read_with_the_configuration(load: Load, tmp_path: Path) -> None:
    options = 'stream_id = "id"\nevent_time = "ts"\ndimensions = ["location.lat"]'

    feed = load_avro(load, tmp_path, options)().feeds["line"].record("line")

    assert feed.format is Format.AVRO
    assert feed.event_time_unit is TimeUnit.US  # its logical type
    assert json.loads(feed.schema)["fields"] == AVRO_FIELDS


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        ('stream_id = "id"\ndimensions = ["location.lon"]', "no field location.lon. Did you mean 'location.lat'?"),
        ('stream_id = "id"\ndimensions = ["location"]', "location is record; a dimension is"),
        ('stream_id = "id"\ndimensions = ["raw"]', "raw is bytes; a dimension is"),
        ('stream_id = "tags"\ndimensions = ["at"]', "tags is array; a stream id is"),
        ('stream_id = "id"\nevent_time = "day"\ndimensions = ["at"]', "day is date; an event time has one of"),
        (
            'stream_id = "id"\nevent_time = "ts"\nevent_time_unit = "s"\ndimensions = ["at"]',
            'ts is in us there, but event_time_unit = "s"; leave that out',
        ),
    ],
)
def test_a_schema_that_does_not_fit_the_feed_is_refused(load: Load, tmp_path: Path, options: str, shown: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(shown)):
        load_avro(load, tmp_path, options)()


LOOP = {"type": "record", "name": "Loop", "fields": [{"name": "next", "type": ["null", "Loop"]}]}


@pytest.mark.parametrize(
    ("odd", "shown"),
    [
        (LOOP, "recursive: Loop is within itself"),
        ({"type": "array", "items": "null"}, "items have no bytes"),
        ("Nowhere", "names the type Nowhere"),
        ({"type": "fixed", "name": "F"}, "F has no size"),
        (5, "5 in place of a type"),
        (json.loads("[" * 900 + '"int"' + "]" * 900), "nested more than 50 deep"),
    ],
)
def test_a_schema_that_no_record_can_be_read_with_is_refused(load: Load, tmp_path: Path, odd: Any, shown: str) -> None:
    fields: list[dict[str, Any]] = [*AVRO_FIELDS, {"name": "odd", "type": odd}]

    with pytest.raises(ConfigError, match=re.escape(shown)):
        load_avro(load, tmp_path, 'stream_id = "id"\ndimensions = ["at"]', fields)()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (
            'format = "avro"',
            'format = "avro": the feed needs the schema of its records; set schema_file, or registry.url',
        ),
        ('schema_file = "a.avsc"', 'for format = "avro" or "protobuf", and not for "json"'),
        ('format = "avro"\nschema_file = "does/not/exist.avsc"', "cannot be read"),
    ],
)
def test_avro_needs_a_schema_file_that_can_be_read_or_a_registry(load: Load, text: str, shown: str) -> None:
    (fault,) = faults(load, text)

    assert shown in fault


def test_a_feed_with_a_registry_needs_no_schema_file(load: Load) -> None:
    config = load('format = "avro"\n[registry]\nurl = "https://schemas:8081/apis/ccompat/v7"')

    assert config.feeds["line"].record("line").registry


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('url = "schemas:8081"', "write http://host:port"),
        ('url = "http://"', "write http://host:port"),
        ('url = "http://schemas:port"', "write http://host:port"),
        ('url = "http://me:of-registry@schemas"', "registry.url = ***: the address has a user or a password"),
        ('url = "http://schemas"\nuser = "me"', "user needs password"),
        ('user = "me"\npassword = "of-registry"', "need url"),
        ('url = "https://schemas"\nca_file = "does/not/exist.pem"', "is no file"),
    ],
)
def test_a_registry_that_cannot_be_asked_is_refused(load: Load, text: str, shown: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(shown)) as refused:
        load(f"[registry]\n{text}")

    assert "of-registry" not in str(refused.value)


def test_the_password_of_the_registry_is_never_shown(load: Load) -> None:
    config = load('[registry]\nurl = "http://schemas"\nuser = "me"\npassword = "of-registry"')

    assert "of-registry" not in f"{config!r} {config}"


SEVERAL = """
[feeds.line]
topics = ["north", "south"]
stream_id = "id"
dimensions = ["x"]
attributes = ["kind"]
"""


def test_a_feed_may_have_several_topics_and_attributes_that_no_record_has(load: Load) -> None:
    text = SEVERAL + 'constants = { level = 5, open = true, region = "17" }\ntopic_attribute = "source"'

    feed = load("", text).feeds["line"].record("line")

    assert feed.topics == ("north", "south")
    assert feed.attributes == ("kind", "level", "open", "region", "source")
    assert feed.constants == (("level", "5.0"), ("open", "true"), ("region", '"17"'))
    assert feed.of_records().attributes == ("kind",)


def test_a_feed_may_have_a_list_of_readings_in_each_record(load: Load) -> None:
    text = LINE.replace('"x"', '"points.x"') + 'readings = "points"'

    assert load("", text).feeds["line"].record("line").readings == "points"


@pytest.mark.parametrize(
    ("option", "shown"),
    [
        ('readings = "points"', 'name at least one as "points.NAME"'),
        ('readings = "x"', "and no field 'x'"),
        ('readings = "points"\nformat = "csv"', 'is not built for "csv"'),
    ],
)
def test_a_list_of_readings_has_fields_and_is_json(load: Load, option: str, shown: str) -> None:
    (fault,) = faults(load, option)

    assert shown in fault


def test_a_constant_of_a_csv_feed_is_read_like_a_cell(load: Load) -> None:
    feed = load('format = "csv"\nconstants = { region = "17" }').feeds["line"].record("line")

    assert feed.constants == (("region", "17.0"),)


@pytest.mark.parametrize(
    ("feeds", "shown"),
    [
        (SEVERAL.replace('topics = ["north", "south"]\n', ""), "feeds.line: a feed has either topic or topics"),
        (SEVERAL + 'topic = "east"', "feeds.line: a feed has either topic or topics"),
        (SEVERAL.replace("south", "north"), 'feeds.line.topics[1] = "north": feeds.line.topics[0] is "north"'),
        (SEVERAL.replace("south", "bmq.events"), 'feeds.line.topics[1] = "bmq.events": topics.events is "bmq.events"'),
        (SEVERAL + LINE.replace("feeds.line", "feeds.other").replace('"line"', '"south"'), "feeds.other.topic"),
        (SEVERAL + 'constants = { kind = "a" }', "kind stands more than once"),
        (SEVERAL + 'topic_attribute = "x"', "x stands more than once"),
        (SEVERAL + "constants = { level = [1] }", "feeds.line.constants.level"),
        (SEVERAL + "constants = { level = nan }", "feeds.line.constants.level"),
    ],
)
def test_topics_and_constants_have_one_role_and_one_value(load: Load, feeds: str, shown: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(shown)):
        load("", feeds)
