"""The part of the configuration that every task of the streaming query needs, small and picklable.

The driver makes one `Plan` from the configuration and the checkpoint. It travels to the workers inside the functions
that Spark calls there.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bmq.kafka_io.schema_registry import RegistryAddress
from bmq.records import Feed, Installation
from bmq.wire.cloud_events import CloudEvents


@dataclass(frozen=True, slots=True)
class Plan:
    """The part of the configuration that tasks need.

    Attributes
    ----------
    run_id : identifies this start of the streaming query, so that no replica of an earlier start is used.
    installation : the feeds, and what queries may name and cost.
    shard_keys : the grouping key of each shard.
    start_offsets : feed -> partition of the feed -> offset at which this checkpoint began; replies contain it before
        any reading.
    silent_tombstones_before : end of the control topic when the checkpoint began; deletes before it get no reply.
    clock_topic : the topic of the marks of silent feeds; None: no feed has `idle_advance`.
    membership_topic : the topic of the streams that are inside now; None: it is not written.
    client_options : options of the Kafka clients of the tasks.
    delivery_id : begins the transactional ids and groups of the checkpoint.
    markers_topic : the topic of the marks of written batches; None: delivery is at least once.
    registry : where the schemas of records are that name them; None: no feed has such records.
    frames_folder : the folder of large frames (`job.frame_files`); None: the tasks may be on several machines.
    envelope : of the events; None: the events as they are.
    """

    run_id: str
    installation: Installation
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
    client_options: dict[str, str]
    delivery_id: str
    markers_topic: str | None
    registry: RegistryAddress | None = None
    frames_folder: Path | None = None
    envelope: CloudEvents | None = None

    @property
    def n_shards(self) -> int:
        """The number of shards."""
        return len(self.shard_keys)

    @property
    def feeds(self) -> Mapping[str, Feed]:
        """Every feed by name."""
        return self.installation.feeds

    def feed_by_topic(self) -> dict[str, Feed]:
        """Return topic -> Feed."""
        return {topic: feed for feed in self.feeds.values() for topic in feed.topics}

    def starts_by_topic(self) -> dict[str, dict[int, int]]:
        """Return topic -> partition -> offset of the first reading."""
        by_feed = (self.feeds[feed].offsets_by_topic(offsets) for feed, offsets in self.start_offsets.items())
        return {topic: offsets for by_topic in by_feed for topic, offsets in by_topic.items()}
