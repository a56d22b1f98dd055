"""The options of a feed.

The docstring below an option is its text in docs/configuration.md.
"""

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from bmq import records
from bmq.config.option_types import (
    Constant,
    Duration,
    DurationOrOff,
    FieldName,
    PositiveDuration,
    Section,
    Topic,
    read_future,
)
from bmq.records.plane import PLANE
from bmq.wire.avro_schema import compile_feed, unit_of_time
from bmq.wire.durations import read_duration
from bmq.wire.protobuf_records import check_protobuf_feed, protobuf_schema
from bmq.wire.record_formats import RECORD_FORMATS


class FeedSection(Section):
    """The input topics and the fields of their records. `NAME` is the name that queries use."""

    topic: Topic | None = None
    """The topic to read. Exactly one of `topic` and `topics` is needed. Fixed for a checkpoint."""
    topics: tuple[Topic, ...] = ()
    """Several topics to read as one, with records of the same form. Partition p of the k-th of them, counted from 0,
    has the number 100,000 k + p in replies and metrics. Fixed for a checkpoint, with their order."""
    format: Literal["json", "csv", "avro", "protobuf"] = "json"
    """How record values are written. A `csv` line holds stream id, event time, dimensions and attributes, in
    this order, without those that are not configured. An `avro` value is one record: of `schema_file` without a
    header, otherwise with the header of a schema registry, which names its schema (see `registry`). A `protobuf`
    value is one `message` of `schema_file`, without a header. In all but `csv`, a field within an object, record or
    message is named by its path, `location.lat`."""
    schema_file: str | None = Field(None, min_length=1)
    """`avro`: the schema (.avsc) that all records of the topic were written with; absent: the records have the header
    of a registry. `protobuf`: the descriptor set that `protoc --include_imports --descriptor_set_out=FILE` makes;
    needed. The service reads it when it starts. Its path is relative to the working folder."""
    message: FieldName | None = None
    """The full name of the message that each record is, such as `fleet.Reading`. For `protobuf`, and needed there."""
    readings: FieldName | None = None
    """The list in each record whose items are readings, by its path, such as `points`. A field of an item then has a
    path through the list, such as `points.x`; all other fields belong to each of the items. For `json` alone. Absent:
    each record is one reading."""
    stream_id: FieldName
    """The field that names the stream, or `@key` for the record key."""
    event_time: FieldName | None = None
    """The field with the event time, a number that counts from 1970, or RFC 3339. Absent: the record's timestamp."""
    event_time_unit: Literal["s", "ms", "us", "ns"] | None = None
    """The unit of an event time that is a number: seconds, milliseconds, microseconds or nanoseconds. A fraction of a
    millisecond is rounded down. Absent: `ms`, and a number below 10^11 or above 10^14 is a dead letter, because it is
    probably of another unit. In `avro`, a logical type of the schema decides."""
    dimensions: Annotated[tuple[FieldName, ...], Field(min_length=1)]
    """The numeric fields that regions are about. Fixed for a checkpoint, with their order."""
    attributes: tuple[FieldName, ...] = ()
    """Further fields, for `where` in a query and for what `select` and joins ask. Fixed for a checkpoint, with their
    order; `bmq checkpoint upgrade` adds some behind them."""
    constants: dict[FieldName, Constant] = Field(default_factory=dict)
    """Further attributes that no record has, each with its value in every reading: a string, a number or a boolean.
    Their names are fixed for a checkpoint, with their order, and come behind `attributes`; their values are not."""
    topic_attribute: FieldName | None = None
    """A further attribute, behind `constants`: the name of the topic that a reading came from. Fixed for a
    checkpoint."""
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
        fields = [self.stream_id, *self.dimensions, *self._every_attribute()]
        if self.event_time is not None:
            fields.append(self.event_time)
        twice = sorted({field for field in fields if fields.count(field) > 1})
        if twice:
            raise ValueError(
                f"{', '.join(twice)} stands more than once among stream_id, event_time, dimensions, "
                "attributes, constants and topic_attribute; give each field one role"
            )
        return self

    @model_validator(mode="after")
    def _list_has_fields(self) -> Self:
        if self.readings is None:
            return self
        if self.format != "json":
            raise ValueError(f'readings is for format = "json", and is not built for "{self.format}"; leave it out')
        fields = (self.stream_id, self.event_time or "", *self.dimensions, *self.attributes)
        if self.readings in fields or not any(name.startswith(f"{self.readings}.") for name in fields):
            raise ValueError(
                f"readings = {self.readings!r} is a list, and the fields of its items are named by a path through it; "
                f'name at least one as "{self.readings}.NAME", and no field {self.readings!r}'
            )
        return self

    @model_validator(mode="after")
    def _has_topics(self) -> Self:
        if (self.topic is None) == (not self.topics):
            raise ValueError("a feed has either topic or topics; set one of them")
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

    @model_validator(mode="after")
    def _schema_fits(self) -> Self:
        is_protobuf = self.format == "protobuf"
        if self.schema_file is not None and not (is_protobuf or self.format == "avro"):
            raise ValueError(
                f'schema_file is for format = "avro" or "protobuf", and not for "{self.format}"; leave it out'
            )
        if is_protobuf and self.schema_file is None:
            raise ValueError('format = "protobuf" needs schema_file, a descriptor set; a registry is not built for it')
        if is_protobuf != (self.message is not None):
            raise ValueError('format = "protobuf" and message need each other; set both, or leave message out')
        if self.schema_file is not None:
            check = check_protobuf_feed if is_protobuf else compile_feed
            try:
                check(self.record("feed").of_records())
            except ValueError as error:
                raise ValueError(f"schema_file = {self.schema_file!r}: {error}") from None
        return self

    @property
    def every_topic(self) -> tuple[str, ...]:
        """All topics that the feed reads."""
        return self.topics or (self.topic or "",)

    def _every_attribute(self) -> tuple[str, ...]:
        of_topic = () if self.topic_attribute is None else (self.topic_attribute,)
        return (*self.attributes, *self.constants, *of_topic)

    @property
    def needs_registry(self) -> bool:
        """Whether the records name their schemas, so that `registry.url` must be set."""
        return self.format == "avro" and self.schema_file is None

    def record(self, name: str) -> records.Feed:
        """Return the feed as a record for the other layers.

        Raises
        ------
        ValueError
            The schema file cannot be read, or is in conflict with `event_time_unit`. A section that was made has read
            it once without this error.
        """
        schema = self._read_schema()
        where_text = RECORD_FORMATS[records.Format(self.format)].where_text
        return records.Feed(
            name=name,
            topic=self.every_topic[0],
            stream_id=self.stream_id,
            dimensions=self.dimensions,
            event_time=self.event_time,
            format=records.Format(self.format),
            attributes=self._every_attribute(),
            index=records.IndexKind(self.index),
            lonlat=self.space == "lonlat",
            max_lateness_ms=read_duration(self.max_lateness),
            stream_ttl_ms=_milliseconds(self.stream_ttl),
            idle_advance_ms=_milliseconds(self.idle_advance),
            max_future_ms=read_future(self.max_future),
            join=self.join,
            event_time_unit=self._time_unit(schema),
            schema=schema,
            registry=self.needs_registry,
            more_topics=self.every_topic[1:],
            constants=tuple((attribute, where_text(value)) for attribute, value in self.constants.items()),
            topic_attribute=self.topic_attribute,
            readings=self.readings,
        )

    def _read_schema(self) -> str:
        if self.schema_file is None:
            return ""
        try:
            content = Path(self.schema_file).read_bytes()
            return content.decode() if self.message is None else protobuf_schema(content, self.message)
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(f"the file cannot be read: {error}; name a readable schema file") from None

    def _time_unit(self, schema: str) -> records.TimeUnit | None:
        unit = None if self.event_time_unit is None else records.TimeUnit(self.event_time_unit)
        if not schema or self.format != "avro" or self.event_time is None:
            return unit
        return unit_of_time(schema, self.event_time, unit)


def _milliseconds(duration: str | None) -> int | None:
    return None if duration is None else read_duration(duration)
