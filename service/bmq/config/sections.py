"""Every option of every section except `kafka`, feeds and tenants: type, default, meaning and the rule for one value.

The docstring below an option is its text in docs/configuration.md.
"""

import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from bmq.config.option_types import PositiveDuration, Section, Topic, Whole
from bmq.wire.cloud_events import CloudEvents
from bmq.wire.durations import read_duration

_URI_REFERENCE = re.compile(r"(?:[a-zA-Z0-9._~:/?#\[\]@!$&'()*+,;=-]|%[0-9a-fA-F]{2})+")  # RFC 3986
SHORTEST_BATCH_TIMEOUT_MS = 30_000
_TRIGGER = re.compile(r"\d+ seconds?|available_now")


def _source(text: str) -> str:
    if not _URI_REFERENCE.fullmatch(text):
        raise ValueError(
            "a source is a URI reference: one or more of a-z A-Z 0-9 and -._~:/?#[]@!$&'()*+,;=%, without spaces; "
            'write such a one, such as "/bmq/berlin"'
        )
    return text


def _trigger(text: str) -> str:
    if not _TRIGGER.fullmatch(text):
        raise ValueError('write "N seconds" with a whole N, or "available_now"')
    return text


def _batch_timeout(text: str) -> str:
    if read_duration(text) < SHORTEST_BATCH_TIMEOUT_MS:
        least = f"{SHORTEST_BATCH_TIMEOUT_MS // 1000}s"
        raise ValueError(f"at least {least}, because an idle service gives a sign every 10 s only; write a longer one")
    return text


Source = Annotated[str, AfterValidator(_source)]


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
