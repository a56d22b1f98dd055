"""The service as one object: topics, session, checkpoint, streaming query, metrics.

service = Service(config, "localhost:9092")
service.start()
service.wait()      # returns after stop(), raises if the streaming query fails
"""

import logging
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from bmq.config import Config
from bmq.errors import ServiceError
from bmq.job.checkpoint import CheckpointFolder, Origin, must_fit
from bmq.job.pipeline import start_pipeline
from bmq.job.plan import Plan
from bmq.job.progress import ProgressListener
from bmq.job.session import make_session
from bmq.job.shards import shard_keys
from bmq.metrics import Metrics
from bmq.topics import Topics
from bmq.warmup import warm_up

FEED_PARTITIONS = 4  # of topics that the service makes itself; a user with more readers makes them beforehand

# A batch that takes longer than this to end is not waited for by stop(): it is run again at the next start.
STOP_LIMIT_SECONDS = 60.0

_log = logging.getLogger(__name__)


class JobFailed(ServiceError):
    """The streaming query stopped by itself; the checkpoint is at the last batch that was whole."""


class Service:
    """The running service.

    Parameters
    ----------
    config : the configuration, checked.
    bootstrap_servers : the Kafka to use.
    """

    def __init__(self, config: Config, bootstrap_servers: str) -> None:
        self._config = config.with_broker(bootstrap_servers)
        self.metrics = Metrics(config.metrics.port, feeds=config.feeds)
        self._stopping = threading.Event()
        self._spark: SparkSession | None = None
        self.streaming_query: StreamingQuery | None = None
        self._listener: ProgressListener | None = None

    def start(self) -> None:
        """Start; returns when the streaming query runs.

        1. Make the topics that are missing.
        2. Start Spark; load the kernels beside it.
        3. Bind the checkpoint to the configuration, or check that it is.
        4. Start the streaming query, then the metrics.

        Raises
        ------
        ConfigError, SetupError, StateError : one of these cannot be done; the message says which and what to do.
        """
        config = self._config
        feeds = config.feed_records()
        topics = Topics(config.kafka.client_options())
        made = topics.create_missing(  # 1
            config.topics.control,
            [feed.topic for feed in feeds.values()]
            + [config.topics.replies, config.topics.events, config.topics.dead_letter],
            FEED_PARTITIONS,
        )
        if made:
            _log.info("Made the topics that were missing: %s.", ", ".join(made))
        with ThreadPoolExecutor(1) as beside:
            warm = beside.submit(warm_up)  # 2: workers then find the kernels compiled
            spark = self._spark = make_session(config.job.shards)
            if not warm.done():
                _log.info("Loading the kernels. The first time they are compiled, which takes about a minute.")
            warm.result()
        folder = CheckpointFolder(spark, config.job.checkpoint)
        origin = folder.read()
        if origin is None:
            origin = _new_origin(config, topics)  # 3
            folder.write(origin)
        must_fit(origin, config.job.checkpoint, config.job.shards, feeds)
        plan = Plan(
            run_id=uuid4().hex,
            feeds=feeds,
            shard_keys=shard_keys(config.job.shards),
            start_offsets=origin.start_offsets,
            silent_tombstones_before=origin.control_end,
            replies_topic=config.topics.replies,
            events_topic=config.topics.events,
            dead_letter_topic=config.topics.dead_letter,
            events_key=config.topics.key,
            events_layout=config.topics.layout,
            output_prefix=config.topics.allowed_output_prefix,
            client_options=config.kafka.client_options(),
            reserved_topics=frozenset([config.topics.control, config.topics.replies, config.topics.dead_letter]),
        )
        self.metrics.start()  # 4
        self._listener = ProgressListener(self.metrics, plan)
        spark.streams.addListener(self._listener)
        self.streaming_query = start_pipeline(spark, config, origin, plan)
        self.metrics.running()
        _log.info(
            "Running: %d feeds, %d shards, checkpoint %s, metrics on port %d.",
            len(feeds),
            config.job.shards,
            config.job.checkpoint,
            self.metrics.port,
        )

    def wait(self) -> None:
        """Return when the streaming query has ended: after `stop`, or when `available_now` has read all.

        Raises
        ------
        JobFailed : it ended by itself.
        """
        assert self.streaming_query is not None, "start() comes first"
        try:
            self.streaming_query.awaitTermination()
        except StreamingQueryException as error:
            if not self._stopping.is_set():
                raise JobFailed(_cause(str(error))) from error
        finally:
            self.metrics.ended()

    def stop(self) -> None:
        """Finish the batch, stop the streaming query, Spark and the metrics. May be called from another thread.

        The query is stopped right after a batch's end. The batch that then begins has written nothing yet, and is
        run again from the checkpoint at the next start.
        """
        self._stopping.set()
        query = self.streaming_query
        if query is not None and query.isActive:
            assert self._listener is not None
            self._listener.batch_ended.clear()
            if query.status["isTriggerActive"]:
                self._listener.batch_ended.wait(STOP_LIMIT_SECONDS)
            query.stop()
        self.metrics.ended()
        self.metrics.stop()
        if self._spark is not None:
            self._spark.stop()


def _new_origin(config: Config, topics: Topics) -> Origin:
    """Return where a new checkpoint begins. Fixed now, so that a failed first batch begins at the same place."""
    feeds = config.feed_records()
    by_topic = {feed.topic: name for name, feed in feeds.items()}
    bounds = topics.end_offsets if config.job.starting_offsets == "latest" else topics.begin_offsets
    control_end = topics.end_offsets([config.topics.control])[config.topics.control][0]
    return Origin(
        shards=config.job.shards,
        start_offsets={by_topic[topic]: offsets for topic, offsets in bounds(by_topic).items()},
        control_end=control_end,
        dimensions={name: list(feed.dimensions) for name, feed in feeds.items()},
    )


def _cause(report: str) -> str:
    """Return the sentence that matters in Spark's report of a failed streaming query."""
    ours = re.findall(r"bmq\.errors\.\w+: (.+)", report)
    if ours:
        return str(ours[-1])
    lines = [line.strip() for line in report.splitlines() if line.strip()]
    causes = [line for line in lines if line.startswith(("Caused by:", "pyspark.", "java.", "org."))]
    last = (causes or lines or ["no report"])[-1]
    return (
        f"The streaming query failed: {last[:500]} Nothing is lost: the checkpoint is at the last whole batch. "
        "BMQ_DEBUG=1 shows the whole report."
    )
