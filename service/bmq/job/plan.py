"""The part of the configuration that every task of the streaming query needs, small and picklable.

The driver makes one `Plan` from the configuration and the checkpoint. It travels to the workers inside the functions
that Spark calls there.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from bmq.records import Feed, Installation, Limits, Tenant


@dataclass(frozen=True, slots=True)
class Plan:
    """The part of the configuration that tasks need.

    Attributes
    ----------
    run_id : identifies this start of the streaming query, so that no replica of an earlier start is used.
    feeds : feed name -> Feed.
    shard_keys : the grouping key of each shard.
    start_offsets : feed -> partition -> offset at which this checkpoint began; replies contain it before any reading.
    silent_tombstones_before : end of the control topic when the checkpoint began; deletes before it get no reply.
    clock_topic : the topic of the marks of silent feeds; None: no feed has `idle_advance`.
    membership_topic : the topic of the streams that are inside now; None: it is not written.
    client_options : options of the Kafka clients of the tasks.
    reserved_topics : topics that the service reads or replies on; no query may write there.
    delivery_id : begins the transactional ids and groups of the checkpoint.
    markers_topic : the topic of the marks of written batches; None: delivery is at least once.
    limits : what the definition of a query may cost.
    tenants : who may put queries; empty: everybody.
    frames_folder : the folder of large frames (`job.frame_files`); None: the tasks may be on several machines.
    """

    run_id: str
    feeds: dict[str, Feed]
    shard_keys: tuple[int, ...]
    start_offsets: dict[str, dict[int, int]]
    silent_tombstones_before: int
    replies_topic: str
    events_topic: str
    dead_letter_topic: str
    clock_topic: str | None
    membership_topic: str | None
    events_key: Literal["stream_id", "query_id"]
    events_layout: Literal["crossing", "reading"]
    output_prefix: str
    client_options: dict[str, str]
    reserved_topics: frozenset[str]
    delivery_id: str
    markers_topic: str | None
    limits: Limits = field(default_factory=Limits)
    tenants: tuple[Tenant, ...] = ()
    frames_folder: Path | None = None

    @property
    def n_shards(self) -> int:
        """The number of shards."""
        return len(self.shard_keys)

    @property
    def installation(self) -> Installation:
        """What the rules for the definition of a query depend on."""
        return Installation(self.feeds, self.output_prefix, self.reserved_topics, self.limits, self.tenants)

    def feed_by_topic(self) -> dict[str, Feed]:
        """Return topic -> Feed."""
        return {feed.topic: feed for feed in self.feeds.values()}
