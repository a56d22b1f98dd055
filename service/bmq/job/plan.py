"""What every task of the streaming query has to know, small and picklable.

The driver makes one `Plan` from the configuration and the checkpoint; it travels to the workers inside the
functions that Spark calls there.
"""

from dataclasses import dataclass
from typing import Literal

from bmq.records import Feed


@dataclass(frozen=True, slots=True)
class Plan:
    """The part of the configuration that tasks need.

    Attributes
    ----------
    run_id : names this start of the streaming query, so that a worker's replicas of another one are not used.
    feeds : feed name -> Feed.
    shard_keys : the grouping key of each shard.
    start_offsets : feed -> partition -> where this checkpoint began to read; what replies say before any reading.
    silent_tombstones_before : end of the control topic when the checkpoint began.
    clock_topic : where marks of idle feeds come from; None: no feed has `idle_advance`.
    membership_topic : where it is said who is inside now; None: nowhere.
    client_options : how to reach Kafka, for a task that makes a query's own topic.
    reserved_topics : where no query may write: what the service reads, or answers on.
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

    @property
    def n_shards(self) -> int:
        """How many shards the streams are divided into."""
        return len(self.shard_keys)

    def feed_by_topic(self) -> dict[str, Feed]:
        """Return topic -> Feed."""
        return {feed.topic: feed for feed in self.feeds.values()}
