"""Every option of every section except `kafka`: type, default, meaning and the rule for one value.

The docstring below an option is its text in docs/configuration.md. Options that are planned but not built are here,
too, so that the service refuses them by name and never ignores them.
"""

import re
from collections.abc import Callable
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    WithJsonSchema,
    model_validator,
)

from bmq import records
from bmq.records.plane import PLANE
from bmq.wire.cloud_events import CloudEvents
from bmq.wire.durations import read_duration, read_positive_duration

# Kafka's own rule (org.apache.kafka.common.internals.Topic).
_TOPIC = re.compile(r"(?!\.{1,2}$)[a-zA-Z0-9._-]{1,249}")
_URI_REFERENCE = re.compile(r"(?:[a-zA-Z0-9._~:/?#\[\]@!$&'()*+,;=-]|%[0-9a-fA-F]{2})+")  # RFC 3986
_OFF = "off"
SHORTEST_BATCH_TIMEOUT_MS = 30_000
_TRIGGER = re.compile(r"\d+ seconds?|available_now")


def _topic(name: str) -> str:
    if not _TOPIC.fullmatch(name):
        raise ValueError("a topic has 1 to 249 of the characters a-z A-Z 0-9 . _ -; choose such a name")
    return name


def _source(text: str) -> str:
    if not _URI_REFERENCE.fullmatch(text):
        raise ValueError(
            "a source is a URI reference: one or more of a-z A-Z 0-9 and -._~:/?#[]@!$&'()*+,;=%, without spaces; "
            'write such a one, such as "/bmq/berlin"'
        )
    return text


def _whole(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError("a whole number is needed; write one")
    return value


def _trigger(text: str) -> str:
    if not _TRIGGER.fullmatch(text):
        raise ValueError('write "N seconds" with a whole N, or "available_now"')
    return text


def _batch_timeout(text: str) -> str:
    if read_duration(text) < SHORTEST_BATCH_TIMEOUT_MS:
        least = f"{SHORTEST_BATCH_TIMEOUT_MS // 1000}s"
        raise ValueError(f"at least {least}, because an idle service gives a sign every 10 s only; write a longer one")
    return text


def _text_of(read: Callable[[object], int | None]) -> BeforeValidator:
    """Return a validator that requires that ``read`` accepts the value; the value stays a text, as in the file."""

    def check(value: object) -> object:
        read(value)
        return value

    return BeforeValidator(check)


def _read_future(value: object) -> int | None:
    """Return the milliseconds of a duration; None for "off"."""
    if value == _OFF:
        return None
    try:
        return read_duration(value)
    except ValueError as error:
        raise ValueError(f'{error}; "{_OFF}" sets no limit') from None


def _later(refused: object) -> AfterValidator:
    """Return a validator that refuses the value ``refused``, which is not built yet."""

    def check(value: Any) -> Any:
        if value == refused:
            raise ValueError("not built yet; leave the option out for the default")
        return value

    return AfterValidator(check)


Topic = Annotated[str, AfterValidator(_topic)]
Source = Annotated[str, AfterValidator(_source)]
FieldName = Annotated[str, Field(min_length=1)]
Whole = Annotated[int, BeforeValidator(_whole)]
_DURATION = WithJsonSchema({"type": "string", "format": "duration"})  # so that the reference shows this type
Duration = Annotated[str, _text_of(read_duration), _DURATION]
DurationOrOff = Annotated[str, _text_of(_read_future), WithJsonSchema({"type": "string", "format": "duration or off"})]
PositiveDuration = Annotated[str, _text_of(read_positive_duration), _DURATION]


class Section(BaseModel):
    """One table of the file: frozen, and every name in it must be known."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class TopicsSection(Section):
    """The topics that the service reads commands from and writes to."""

    control: Topic = "bmq.control"
    """Commands: key = query id, value = definition. One partition, compacted."""
    replies: Topic = "bmq.replies"
    """One reply a command."""
    events: Topic = "bmq.events"
    """Events of every query that names no topic of its own."""
    dead_letter: Topic = "bmq.dead-letter"
    """Records of feeds that are no readings, unchanged, with the reason in headers."""
    clock: Topic = "bmq.clock"
    """Marks that move the clock of a silent feed; made and read only if a feed has `idle_advance`."""
    markers: Topic = "bmq.markers"
    """Holds no records: the offsets of consumer groups on it say which batches are written; made and used only if
    `job.delivery` is `exactly_once`."""
    membership: Topic | None = None
    """The streams that are inside now, compacted: key = query, feed and stream, null after the stream left. Absent:
    not written."""
    key: Literal["stream_id", "query_id"] = "stream_id"
    """The key of the events."""
    allowed_output_prefix: str = "bmq."
    """What the `output_topic` of a query must begin with."""
    layout: Literal["crossing", "reading"] = "crossing"
    """`crossing`: one event a crossing. `reading`: one event a reading that crossed anything."""
    event_format: Literal["json", "cloudevents-binary", "cloudevents-structured"] = "json"
    """How an event is a record: as JSON, or as a [CloudEvent](wire-format.md#cloudevents) in one of the two modes."""
    event_source: Source = "/bmq"
    """The attribute `source` of CloudEvents, a URI reference. Give each installation its own."""

    def reserved(self) -> frozenset[str]:
        """Return the topics that no query may write to, because the service reads them or replies on them."""
        named = (self.control, self.clock, self.replies, self.dead_letter, self.markers, self.membership)
        return frozenset(topic for topic in named if topic is not None)

    def envelope(self) -> CloudEvents | None:
        """Return the envelope of the events; None: they have none."""
        match self.event_format:
            case "json":
                return None
            case "cloudevents-binary":
                return CloudEvents("binary", self.event_source)
            case "cloudevents-structured":
                return CloudEvents("structured", self.event_source)

    @model_validator(mode="after")
    def _key_fits_layout(self) -> Self:
        if self.layout == "reading" and self.key == "query_id":
            raise ValueError(
                'with layout = "reading" one event is about many queries, so key = "query_id" has no '
                "meaning; change one of the two"
            )
        return self


class FeedSection(Section):
    """One input topic and the fields of its records. `NAME` is the name that queries use."""

    topic: Topic
    """The topic to read."""
    format: Annotated[Literal["json", "csv", "avro"], _later("avro")] = "json"
    """How record values are written. A `csv` line holds stream id, event time, dimensions and attributes, in
    this order, without those that are not configured. `avro` is not built yet: refused."""
    stream_id: FieldName
    """The field that names the stream, or `@key` for the record key."""
    event_time: FieldName | None = None
    """The field with the event time, a number that counts from 1970, or RFC 3339. Absent: the record's timestamp."""
    event_time_unit: Literal["s", "ms", "us", "ns"] | None = None
    """The unit of an event time that is a number: seconds, milliseconds, microseconds or nanoseconds. A fraction of a
    millisecond is rounded down. Absent: `ms`, and a number below 10^11 or above 10^14 is a dead letter, because it is
    probably of another unit."""
    dimensions: Annotated[tuple[FieldName, ...], Field(min_length=1)]
    """The numeric fields that regions are about. Fixed for a checkpoint, with their order."""
    attributes: tuple[FieldName, ...] = ()
    """Further fields, for `where` in a query and for what `select` and joins ask. Fixed for a checkpoint, with their
    order; `bmq checkpoint upgrade` adds some behind them."""
    space: Literal["plane", "lonlat"] = "plane"
    """`plane`: plain numbers. `lonlat`: two dimensions in degrees, the longitude first; 180 is -180, a circle's radius
    is in metres, and boxes and polygons may cross the antimeridian. A reading that is nowhere on the globe is a dead
    letter. Fixed for a checkpoint."""
    index: Literal["auto", "region_segments", "border_grid", "nd_bmq", "stab_difference", "scan"] = "auto"
    """What finds the crossings: `auto` takes the structure that is cheapest for the queries and the movement, and
    another when these change. `region_segments` is for one dimension, `border_grid` and `nd_bmq` are for two and
    more; in five and more, the first batch waits until `border_grid` is compiled. No answer depends on it, and a
    checkpoint takes any."""
    max_lateness: Duration = "0s"
    """By how much the readings of a stream may be out of order, whichever partition they come from. The service holds
    each reading until its stream, or the feed's clock, is that far ahead, so all events come that much later. It counts
    and drops a reading that its own stream has left further behind. It holds readings of a stream that is behind its
    feed only until the clock moves, so out-of-order readings of such a stream may be dropped. `0s`: not held."""
    stream_ttl: PositiveDuration | None = None
    """The silence, in event time, after which a stream is unknown again and all its memberships end. Absent: never."""
    idle_advance: PositiveDuration | None = None
    """When no reading of the feed came for so long, wall time moves its clock, so that a silent feed does not hold
    up what is due: `ttl`, `stream_ttl`, `stay_for` and the like. Absent: only readings move the clock."""
    max_future: DurationOrOff = "1h"
    """How far an event time may be ahead of its record's timestamp. Further ahead is a dead letter and does not move
    the clock, so that one wrong clock does not expire everything. `off`: any."""
    join: bool = False
    """Whether `band_join` and `window_join` may use the feed. All its readings then go to every shard, too. Fixed for a
    checkpoint."""

    @model_validator(mode="after")
    def _fields_are_distinct(self) -> Self:
        fields = [self.stream_id, *self.dimensions, *self.attributes]
        if self.event_time is not None:
            fields.append(self.event_time)
        twice = sorted({field for field in fields if fields.count(field) > 1})
        if twice:
            raise ValueError(
                f"{', '.join(twice)} stands more than once among stream_id, event_time, dimensions and "
                "attributes; give each field one role"
            )
        return self

    @model_validator(mode="after")
    def _index_fits_dimensions(self) -> Self:
        n_dims = len(self.dimensions)
        if not records.IndexKind(self.index).fits(n_dims):
            fitting = ", ".join(f'"{kind}"' for kind in records.IndexKind if kind.fits(n_dims))
            raise ValueError(
                f'index = "{self.index}" is not for {n_dims} dimension{"s" * (n_dims > 1)}; take one of {fitting}'
            )
        return self

    @model_validator(mode="after")
    def _degrees_are_two(self) -> Self:
        n_dims = len(self.dimensions)
        if self.space == "lonlat" and n_dims != PLANE:
            raise ValueError(
                f'space = "lonlat" is for two dimensions, longitude and latitude, and not for {n_dims}; write '
                'dimensions = ["lon", "lat"] with the names of the fields, or leave space out'
            )
        return self

    def record(self, name: str) -> records.Feed:
        """Return the feed as a record for the other layers."""
        return records.Feed(
            name=name,
            topic=self.topic,
            stream_id=self.stream_id,
            dimensions=self.dimensions,
            event_time=self.event_time,
            format=records.Format(self.format),
            attributes=self.attributes,
            index=records.IndexKind(self.index),
            lonlat=self.space == "lonlat",
            max_lateness_ms=read_duration(self.max_lateness),
            stream_ttl_ms=_milliseconds(self.stream_ttl),
            idle_advance_ms=_milliseconds(self.idle_advance),
            max_future_ms=_read_future(self.max_future),
            join=self.join,
            event_time_unit=None if self.event_time_unit is None else records.TimeUnit(self.event_time_unit),
        )


def _milliseconds(duration: str | None) -> int | None:
    return None if duration is None else read_duration(duration)


class JobSection(Section):
    """How the streaming query runs."""

    checkpoint: str = Field("var/checkpoint", min_length=1)
    """Folder or URI of offsets and state. It belongs to one service at a time."""
    shards: Whole = Field(4, ge=1, le=1024)
    """Into how many parts the streams are divided. Fixed for a checkpoint."""
    workers: Whole | None = Field(None, ge=1, le=1024)
    """How many tasks run at once on this machine; by default, one for each core. On a cluster the options of
    spark-submit decide, and this one is refused."""
    trigger: Annotated[str, AfterValidator(_trigger)] = "0 seconds"
    """`N seconds` between batches (0: as soon as there is input), or `available_now`: read all and stop."""
    starting_offsets: Literal["latest", "earliest"] = "latest"
    """Where feeds are read from on a new checkpoint. The control topic is always read from its beginning."""
    max_readings_per_batch: Whole = Field(400_000, ge=1)
    """The most records of all feeds together in one batch."""
    on_data_loss: Literal["stop", "continue"] = "stop"
    """What happens when Kafka no longer has readings that the service has not read: retention, a topic that was made
    anew. `stop`: the service stops and names the place. `continue`: it goes on with what is there, counts the lost
    offsets and writes a dead letter."""
    delivery: Literal["at_least_once", "exactly_once"] = "exactly_once"
    """`exactly_once`: a batch and its mark are one transaction of Kafka, so a batch that runs again writes nothing.
    Consumers must read committed records. `at_least_once`: a batch that runs again is written again."""
    batch_timeout: Annotated[PositiveDuration, AfterValidator(_batch_timeout)] = "10m"
    """If no batch ends for this long, the service ends with exit code 1, so that whoever looks after it starts it
    again."""

    @property
    def batch_timeout_seconds(self) -> float:
        """`batch_timeout` in seconds."""
        return read_duration(self.batch_timeout) / 1000


class LogSection(Section):
    """What the service writes to stderr while it runs."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    """The least level that is written. `debug`: also every line of Spark's JVM."""
    format: Literal["text", "json"] = "text"
    """`json`: each line is an object with `time`, `level`, `logger` and `message`, and `traceback` if there is one."""


class MetricsSection(Section):
    """Where Prometheus finds the metrics."""

    host: str = Field("127.0.0.1", min_length=1)
    """Address to listen on: by default, only this machine can ask. `0.0.0.0`: every interface."""
    port: Whole = Field(9108, ge=0, le=65535)
    """Port of `/metrics` and `/health`. 0: any free port."""
    certificate: str = ""
    """File of a certificate in PEM: the port speaks TLS. Needs `key`."""
    key: str = ""
    """File of the private key of the certificate, in PEM, without a password."""
    user: str = Field("", pattern=r"^[^:]*$")
    """Who may see `/metrics` (basic authentication); empty: everybody. `/health` needs no user."""
    password: str = Field("", repr=False)
    """The password of the user. Better in the environment: `BMQ_METRICS__PASSWORD`."""

    @model_validator(mode="after")
    def _check_pairs(self) -> Self:
        for one, other in (("certificate", "key"), ("user", "password")):
            if bool(getattr(self, one)) != bool(getattr(self, other)):
                missing, given = (one, other) if getattr(self, other) else (other, one)
                raise ValueError(f"{given} needs {missing}, too; set both, or leave both out")
        return self
