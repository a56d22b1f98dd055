"""Feeds, regions and queries."""

from dataclasses import dataclass, replace
from enum import IntEnum, StrEnum

from bmq.records.kinds import Family, Kind

# Between the numbers of the first partitions of two topics of a feed; no topic has so many partitions.
PARTITIONS_OF_A_TOPIC = 100_000


class Format(StrEnum):
    """How a feed's record values are written."""

    JSON = "json"
    CSV = "csv"
    AVRO = "avro"
    PROTOBUF = "protobuf"


class TimeUnit(StrEnum):
    """What an event time counts that is a number."""

    S = "s"
    MS = "ms"
    US = "us"
    NS = "ns"

    @property
    def power(self) -> int:
        """The power of ten that turns a number of this unit into milliseconds."""
        return {TimeUnit.S: 3, TimeUnit.MS: 0, TimeUnit.US: -3, TimeUnit.NS: -6}[self]


class IndexKind(StrEnum):
    """Which border structure finds the crossings of a feed; docs/indexes.md says what each is good for."""

    AUTO = "auto"  # whatever the cost model finds cheapest, from time to time anew
    REGION_SEGMENTS = "region_segments"
    BORDER_GRID = "border_grid"
    ND_BMQ = "nd_bmq"
    STAB_DIFFERENCE = "stab_difference"
    SCAN = "scan"

    def fits(self, n_dims: int) -> bool:
        """Return whether there is such a structure for values of ``n_dims`` dimensions."""
        if self is IndexKind.REGION_SEGMENTS:
            return n_dims == 1
        return n_dims > 1 or self not in (IndexKind.BORDER_GRID, IndexKind.ND_BMQ)


class Initial(StrEnum):
    """Whether a new or edited query has events for streams that are already inside."""

    EMIT = "emit"
    SILENT = "silent"


class Pattern(IntEnum):
    """The four region transition events of BMQ-Processor, section 6.2. The numbers are in state."""

    IN_THEN_OUT = 1
    OUT_THEN_IN = 2
    IN_NOT_OUT = 3
    OUT_NOT_IN = 4

    @property
    def text(self) -> str:
        """The pattern as it stands in definitions and events."""
        return self.name.lower()


class ShapeKind(StrEnum):
    """What a shape's numbers mean."""

    POLYGON = "polygon"  # rings of vertices; a value is inside by the even-odd rule over all rings
    CIRCLE = "circle"


@dataclass(frozen=True, slots=True)
class Feed:
    """One input topic with its declared dimensions.

    Attributes
    ----------
    stream_id : the field that names the stream, or "@key" for the record key.
    event_time : the field that holds the event time; None: the record's own timestamp.
    event_time_unit : the unit of an event time that is a number; None: milliseconds, and a number that is probably of
        another unit is refused.
    dimensions : the numeric fields, in the order of every array's first axis.
    index : how crossings are found; no answer depends on it, and no checkpoint.
    lonlat : the two dimensions are longitude and latitude in degrees; 180 is -180.
    max_lateness_ms : how long readings are held and put in order; 0: not held.
    stream_ttl_ms : the silence after which a stream is unknown again; None: never.
    idle_advance_ms : the silence of the feed after which wall time moves its clock; None: never.
    max_future_ms : how far an event time may be ahead of the record's timestamp; None: any. A record without a
        timestamp has no limit.
    join : whether it may take part in joins; all its readings then go to every shard.
    schema : the schema of the records, as JSON: of Avro its own, of Protobuf that of `wire.protobuf_records`; "" for
        the other formats, and if each record names its schema.
    registry : each record names its schema in the header of a schema registry.
    more_topics : further topics whose partitions are partitions of the feed, too.
    constants : the last of ``attributes``, or the last but ``topic_attribute``, which no record has: for each its text
        (`wire.attributes`) in every reading.
    readings : the path of the list in each record whose items are readings; None: each record is a reading.
    topic_attribute : the last of ``attributes``: the name of the topic that the reading came from. None: there is none.
    """

    name: str
    topic: str
    stream_id: str
    dimensions: tuple[str, ...]
    event_time: str | None = None
    format: Format = Format.JSON
    attributes: tuple[str, ...] = ()
    index: IndexKind = IndexKind.AUTO
    lonlat: bool = False
    max_lateness_ms: int = 0
    stream_ttl_ms: int | None = None
    idle_advance_ms: int | None = None
    max_future_ms: int | None = None
    join: bool = False
    event_time_unit: TimeUnit | None = TimeUnit.MS
    schema: str = ""
    registry: bool = False
    more_topics: tuple[str, ...] = ()
    constants: tuple[tuple[str, str], ...] = ()
    topic_attribute: str | None = None
    readings: str | None = None

    @property
    def topics(self) -> tuple[str, ...]:
        """Every topic of the feed."""
        return (self.topic, *self.more_topics)

    def partition_of(self, topic: str, partition: int) -> int:
        """Return the number that a partition of one of the topics has among all partitions of the feed."""
        return self.topics.index(topic) * PARTITIONS_OF_A_TOPIC + partition

    def offsets_by_topic(self, offsets: dict[int, int]) -> dict[str, dict[int, int]]:
        """Return topic -> partition -> offset, from partition of the feed -> offset."""
        found: dict[str, dict[int, int]] = {topic: {} for topic in self.topics}
        for number, offset in offsets.items():
            place, partition = divmod(number, PARTITIONS_OF_A_TOPIC)
            found[self.topics[place]][partition] = offset
        return found

    def of_records(self) -> "Feed":
        """Return the feed with the attributes that its records have."""
        n_others = len(self.constants) + (self.topic_attribute is not None)
        attributes = self.attributes[: len(self.attributes) - n_others]
        return replace(self, attributes=attributes, constants=(), topic_attribute=None)


@dataclass(frozen=True, slots=True)
class Shape:
    """A region that is no box, in the two dimensions of its feed.

    Attributes
    ----------
    vertices : float64 little-endian pairs (x, y). POLYGON: all rings, one behind the other, each closed (its last
        vertex equals its first). CIRCLE: the centre.
    ring_starts : ring k is the vertices ``ring_starts[k]`` to ``ring_starts[k + 1]``; empty for a circle.
    radius : of a circle, in the unit of the dimensions; metres where ``lonlat``.
    lonlat : longitudes ascend without a jump, from a smallest one in [-180, 180); they pass 180 where the shape lies
        over the antimeridian.
    """

    kind: ShapeKind
    vertices: bytes
    ring_starts: tuple[int, ...] = ()
    radius: float = 0.0
    lonlat: bool = False


@dataclass(frozen=True, slots=True)
class Region:
    """What a query watches.

    Attributes
    ----------
    lo, hi : one number a dimension of the feed. Without a shape the region is the box [lo, hi), with -inf and inf for
        "unbounded"; other bounds were turned into half-open ones with nextafter at the edge of the system. With a
        shape, a box that holds all of it (all longitudes, where it lies over the antimeridian).
    shape : None: a box.
    """

    lo: tuple[float, ...]
    hi: tuple[float, ...]
    shape: Shape | None = None


# One attribute and the values that fit, as JSON texts; all pairs must fit.
Where = tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True, slots=True)
class RegionQuery:
    """One standing query over one feed: of kind `border`, `transition`, `match` or `select`.

    Attributes
    ----------
    region : what is watched; of a select query a box around all its alternatives.
    version : control offset + 1 of the definition in force.
    streams : the only streams watched, sorted and unique; None: all.
    where : what the attributes of a reading must be; values as `wire.attributes` writes them.
    tags : canonical JSON object text, copied into every event.
    ttl_ms, expires_at : when the query ends: that long after the clock at registration, or at that epoch ms.
    stream_ttl_ms : the silence of a stream that ends its membership in this query.
    exit_region : the region that must be left; None: ``region``.
    stay_for_ms, away_for_ms : how long a stream must stay, or stay away, before the service emits its event.
    cooldown_ms : how long after a + of a stream the service emits no other one.
    max_events : events of one stream, after which the service emits no more.
    pattern, within_ms : of a transition query.
    alternatives : of a select query: boxes over the feed's dimensions and then its attributes, any of which is to hold
        a reading. An attribute is a coordinate where it is a number, and no number is -inf: it fits where nothing is
        asked of the attribute, and no interval that is asked, whose lower end is finite.
    """

    query_id: str
    version: int
    feed: str
    region: Region
    streams: tuple[str, ...] | None = None
    initial: Initial = Initial.EMIT
    output_topic: str | None = None
    tags: str = "{}"
    where: Where = ()
    enabled: bool = True
    ttl_ms: int | None = None
    expires_at: int | None = None
    stream_ttl_ms: int | None = None
    passes: bool = False
    exit_region: Region | None = None
    stay_for_ms: int = 0
    away_for_ms: int = 0
    cooldown_ms: int = 0
    max_events: int | None = None
    kind: Kind = Kind.BORDER
    pattern: Pattern | None = None
    within_ms: int = 0
    alternatives: tuple[Region, ...] = ()

    @property
    def feeds(self) -> tuple[str]:
        """The feeds that the query reads: one."""
        return (self.feed,)

    @property
    def is_level(self) -> bool:
        """Whether it reports every reading inside, and so has no members: kinds `match` and `select`."""
        return self.kind.family is Family.LEVEL

    @property
    def is_tracked(self) -> bool:
        """Whether its events depend on more than the last reading of a stream: it then has trackings."""
        return (
            self.pattern is not None
            or self.exit_region is not None
            or self.stay_for_ms > 0
            or self.away_for_ms > 0
            or self.cooldown_ms > 0
            or self.max_events is not None
        )


@dataclass(frozen=True, slots=True)
class JoinSide:
    """One input of a join.

    Attributes
    ----------
    where : what the attributes of its readings must be, as in `RegionQuery`.
    equal : the field whose text must be equal on both sides: the feed's `stream_id`, an attribute or a dimension;
        None: none. An attribute that is absent, an object or a list is equal to nothing.
    window_ms, window_count : of a window join, exactly one: how long, or for how many readings of the feed that follow
        it, a reading stays in the window.
    """

    feed: str
    where: Where = ()
    equal: str | None = None
    window_ms: int | None = None
    window_count: int | None = None


@dataclass(frozen=True, slots=True)
class Band:
    """``lo <= left - right <= hi``, both ends closed, -inf and inf for "unbounded".

    left, right : columns of the sides: the feed's dimensions, then its attributes.
    """

    left: int
    right: int
    lo: float
    hi: float


@dataclass(frozen=True, slots=True)
class Conjunction:
    """What must hold of a pair: a box for each side, and bands.

    left, right : boxes over the columns of a side, as `RegionQuery.alternatives`.
    """

    left: Region
    right: Region
    bands: tuple[Band, ...] = ()


@dataclass(frozen=True, slots=True)
class JoinQuery:
    """One standing query over two feeds: of kind `band_join` or `window_join`.

    Attributes
    ----------
    alternatives : conjunctions, any of which is to hold; of a band join exactly one, with one band and unbounded boxes.
    reports_queries : of a band join: its events say that its answer changed, not by which pairs.
    """

    query_id: str
    version: int
    kind: Kind
    left: JoinSide
    right: JoinSide
    alternatives: tuple[Conjunction, ...]
    reports_queries: bool = False
    output_topic: str | None = None
    tags: str = "{}"
    enabled: bool = True
    ttl_ms: int | None = None
    expires_at: int | None = None

    @property
    def feeds(self) -> tuple[str, str]:
        """The feeds that the query reads: left, right."""
        return self.left.feed, self.right.feed


Query = RegionQuery | JoinQuery
