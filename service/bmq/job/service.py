"""The service as one object: topics, session, checkpoint, streaming query, metrics.

service = Service(config, "localhost:9092")
service.start()
service.wait()      # says when it runs; returns after stop(), raises if the streaming query fails
"""

import logging
import threading
from collections.abc import Callable
from uuid import uuid4

import msgspec
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from bmq.config import Config
from bmq.errors import ConfigError
from bmq.job.checkpoint import FILE, CheckpointFolder, Origin, bound_options, must_fit, new_delivery_id
from bmq.job.checkpoint_place import fitting_file_manager, folder_of, use_file_manager
from bmq.job.executors import ExecutorWatch
from bmq.job.failed_query import JobFailed, explained
from bmq.job.idle import ClockWriter, IdleFeeds
from bmq.job.moved_checkpoint import follow_move
from bmq.job.pipeline import start_pipeline
from bmq.job.plan import Plan
from bmq.job.preloaded import start_loading
from bmq.job.progress import ProgressListener
from bmq.job.rehearsal import readings_wait, rehearse
from bmq.job.session import end_jvm, is_submitted, make_session, start_worker_daemons, temporary_folder
from bmq.job.shards import shard_keys
from bmq.job.watchdog import BrokerWatch, Watchdog
from bmq.kafka_io.schema_registry import configured_registry
from bmq.kafka_io.topics import Topics
from bmq.metrics.endpoint import Place
from bmq.metrics.health import Health
from bmq.metrics.metrics import Metrics
from bmq.records import Feed

FEED_PARTITIONS = 4  # of topics that the service creates; a user with more readers creates the topics beforehand

# stop() interrupts a batch that takes longer than this to end; the batch runs again at the next start.
STOP_LIMIT_SECONDS = 60.0

SIGNAL_SECONDS = 1  # how long a signal may be without effect at worst; each step costs one call of the JVM

FIRST_BATCH_PAUSE_SECONDS = 0.05

_log = logging.getLogger(__name__)


class Service:
    """The running service.

    Parameters
    ----------
    config : the checked configuration.
    bootstrap_servers : the address of Kafka; it replaces the address in ``config``.
    """

    def __init__(self, config: Config, bootstrap_servers: str) -> None:
        self._config = config.with_broker(bootstrap_servers)
        health = Health(config.job.batch_timeout_seconds)
        self.metrics = Metrics(Place(**config.metrics.model_dump()), config.feeds, health)
        self._watchdog = Watchdog(health, end_jvm)
        self._broker_watch = BrokerWatch(self._config.kafka.client_options(), health)
        self._jvm_is_gone = False
        self._stopping = threading.Event()
        self._spark: SparkSession | None = None
        self.streaming_query: StreamingQuery | None = None
        self._listener: ProgressListener | None = None
        self._clock_writer: ClockWriter | None = None
        self._executor_watch: ExecutorWatch | None = None

    def start(self) -> None:
        """Start the service; return when the streaming query has begun.

        1. Create the missing topics.
        2. Start Spark.
        3. Bind a new checkpoint to the configuration, or check that an old one fits it.
        4. Start the daemons of the Python workers, with the kernels; on one machine, rehearse unless readings wait.
        5. Serve the metrics, then start the streaming query.
        6. Start the threads that look after it, and the writer that advances the clocks of silent feeds.

        Raises
        ------
        ConfigError, SetupError, StateError, JobFailed : a step failed; the message has the reason and the way out.
        """
        config = self._config
        _must_leave_workers_to_spark_submit(config)
        if not is_submitted():
            start_loading()  # it takes as long as the steps up to 3
        feeds = config.feed_records()
        topics = Topics(config.kafka.client_options())
        made = topics.create_missing(  # 1
            config.topics.control,
            [topic for feed in feeds.values() for topic in feed.topics]
            + [config.topics.replies, config.topics.events, config.topics.dead_letter],
            FEED_PARTITIONS,
            clock=_clock_topic(config),
            membership=config.topics.membership,
            markers=_markers_topic(config),
        )
        if made:
            _log.info("Made the topics that were missing: %s.", ", ".join(made))
        _warn_if_not_compacted(topics, config.topics.membership)
        spark = self._spark = make_session(config.job.shards, n_workers=config.job.workers)  # 2
        with explained(f"{config.job.checkpoint}/{FILE}"):  # 3
            origin = _bind(CheckpointFolder(spark, config.job.checkpoint), config, topics)
            folder = folder_of(spark, config.job.checkpoint)
            file_manager = fitting_file_manager(spark, config.job.checkpoint)
            if folder is not None and follow_move(folder):
                _log.info("Checkpoint %s was made at another place. Spark's files name this one now.", folder)
        plan = _plan(config, origin)
        _log.info("Loading the kernels. The first time they are compiled, which takes some minutes.")
        with explained():  # 4
            if is_submitted() or config.job.trigger == "available_now" or readings_wait(plan, topics, folder):
                # Before the watchdog begins: an executor without the compiled kernels takes minutes.
                start_worker_daemons(spark)
            else:
                rehearse(spark, plan)
        if is_submitted():
            self._executor_watch = ExecutorWatch(spark)
            self._executor_watch.start()
        self.metrics.start()  # 5
        idle_feeds = _idle_feeds(config)
        self._listener = ProgressListener(self.metrics, plan, idle_feeds)
        self._listener.register(spark)
        use_file_manager(spark, file_manager)  # after the rehearsal, which is on this machine
        with explained(f"{config.job.checkpoint}/metadata"):
            streaming_query = self.streaming_query = start_pipeline(spark, config, origin, plan)
        self.metrics.health.begun()
        self._watchdog.start()  # 6
        self._broker_watch.start()
        # With `available_now` the result must not depend on wall time, and the run must not be prolonged by marks.
        if plan.clock_topic is not None and config.job.trigger != "available_now":
            self._clock_writer = ClockWriter(
                plan.client_options,
                plan.clock_topic,
                idle_feeds,
                lambda: bool(streaming_query.status["isTriggerActive"]),
            )
            self._clock_writer.start()

    def wait_until_running(self) -> None:
        """Return when the first batch has ended, there is no input for one, or the streaming query has ended.

        The first batch takes some seconds, because Spark plans it and it reads the control topic. Readings that are
        sent after it find the queries in effect that the control topic had when a new checkpoint began. An old
        checkpoint reads what has come since in batches of `limits.commands_per_batch`.
        """
        assert self.streaming_query is not None, "start() comes first"
        assert self._listener is not None
        while not self._listener.batch_ended.wait(FIRST_BATCH_PAUSE_SECONDS):
            if self._stopping.is_set() or not self.streaming_query.isActive:
                break
            if self.streaming_query.status["message"].startswith("Waiting"):
                break
        if self._stopping.is_set() or not self.streaming_query.isActive:
            return
        self.metrics.running()
        job = self._config.job
        _log.info(
            "Running: %d feeds, %d shards, checkpoint %s, metrics on port %d.",
            len(self._config.feeds),
            job.shards,
            job.checkpoint,
            self.metrics.port,
        )

    def wait(self) -> None:
        """Return when the streaming query has ended: after `stop`, or when `available_now` has read all records.

        Raises
        ------
        JobFailed : the streaming query failed, the watchdog has ended it, or its JVM has ended.
        """
        assert self.streaming_query is not None, "start() comes first"
        try:
            # In steps: a signal that comes right before Python blocks in this call has its handler run after the call.
            with explained():
                self.wait_until_running()
                while not self.streaming_query.awaitTermination(SIGNAL_SECONDS):
                    pass
        except JobFailed:
            if not self._stopping.is_set():
                raise
        except (Py4JError, OSError) as error:
            self._jvm_is_gone = True
            reason = self._watchdog.reason or "Spark's JVM has ended: somebody killed it, or the machine had no memory."
            raise JobFailed(reason) from error
        finally:
            self.metrics.ended()

    def stop(self) -> None:
        """Finish the batch, stop the streaming query, Spark and the metrics. May be called from another thread.

        The streaming query is stopped right after the end of a batch. The batch that begins at that moment has written
        nothing yet, and runs again from the checkpoint at the next start.
        """
        self._stopping.set()
        self._watchdog.stop()
        self._broker_watch.stop()
        if self._clock_writer is not None:
            self._clock_writer.stop()
        if self._executor_watch is not None:
            self._executor_watch.stop()
        if self._jvm_is_gone:
            self.metrics.stop()
            return
        streaming_query = self.streaming_query
        if streaming_query is not None and streaming_query.isActive:
            assert self._listener is not None
            self._listener.batch_ended.clear()
            if streaming_query.status["isTriggerActive"]:
                self._listener.batch_ended.wait(STOP_LIMIT_SECONDS)
            streaming_query.stop()
        self.metrics.ended()
        self.metrics.stop()
        if self._spark is not None:
            self._spark.stop()


def _bind(folder: CheckpointFolder, config: Config, topics: Topics) -> Origin:
    """Return the checkpoint's origin; write it if the checkpoint is new, or a feed is new to it."""
    feeds = config.feed_records()
    found = folder.read()
    if found is None:
        # Fixed now, so that the first batch begins at the same offsets when it runs again after a failure.
        latest = config.job.starting_offsets == "latest"
        origin = Origin(
            shards=config.job.shards,
            start_offsets=_offsets(feeds, topics.end_offsets if latest else topics.begin_offsets),
            control_end=topics.end_offsets([config.topics.control])[config.topics.control][0],
            feeds=bound_options(feeds),
            clock_start=_clock_end(config, topics),
            delivery_id=new_delivery_id(),
        )
    else:
        must_fit(found, config.job.checkpoint, config.job.shards, feeds)
        # A topic that is new to a checkpoint is read from its beginning.
        added = {name: feed for name, feed in feeds.items() if name not in found.feeds}
        begin_offsets = _offsets(added, topics.begin_offsets)
        origin = msgspec.structs.replace(
            found,
            start_offsets=found.start_offsets | begin_offsets,
            feeds=found.feeds | bound_options(added),
            clock_start=found.clock_start or _clock_end(config, topics),
            delivery_id=found.delivery_id or new_delivery_id(),
        )
    if origin != found:
        folder.write(origin)
    return origin


def _idle_feeds(config: Config) -> IdleFeeds:
    advances = {name: feed.idle_advance_ms for name, feed in config.feed_records().items()}
    return IdleFeeds({name: advance for name, advance in advances.items() if advance is not None})


def _markers_topic(config: Config) -> str | None:
    """Return the topic of marks; None: batches are written at least once."""
    return config.topics.markers if config.job.delivery == "exactly_once" else None


def _must_leave_workers_to_spark_submit(config: Config) -> None:
    if config.job.workers is not None and is_submitted():
        raise ConfigError(
            f"job.workers is {config.job.workers}, but spark-submit started this service, and its options decide how "
            "many tasks run at once. Leave job.workers out, and use --executor-cores with --num-executors (YARN, "
            "Kubernetes) or --total-executor-cores (a standalone cluster)."
        )


def _clock_topic(config: Config) -> str | None:
    """Return the topic of marks; None if no feed has `idle_advance`."""
    return config.topics.clock if len(_idle_feeds(config)) else None


def _clock_end(config: Config, topics: Topics) -> dict[int, int]:
    topic = _clock_topic(config)
    return {} if topic is None else topics.end_offsets([topic])[topic]


def _warn_if_not_compacted(topics: Topics, membership: str | None) -> None:
    state = None if membership is None else topics.state(membership)
    if state is not None and not state.compacted:
        _log.warning(
            "Topic %s is not compacted: it grows without end, or forgets who is inside. Set cleanup.policy=compact "
            "on it.",
            state.name,
        )


def _offsets(
    feeds: dict[str, Feed], offsets_of: Callable[[list[str]], dict[str, dict[int, int]]]
) -> dict[str, dict[int, int]]:
    by_topic = offsets_of([topic for feed in feeds.values() for topic in feed.topics])
    return {
        name: {
            feed.partition_of(topic, partition): offset
            for topic in feed.topics
            for partition, offset in by_topic[topic].items()
        }
        for name, feed in feeds.items()
    }


def _plan(config: Config, origin: Origin) -> Plan:
    topics = config.topics
    run_id = uuid4().hex
    return Plan(
        run_id=run_id,
        installation=config.installation(),
        shard_keys=shard_keys(config.job.shards),
        start_offsets=origin.start_offsets,
        silent_tombstones_before=origin.control_end,
        replies_topic=topics.replies,
        events_topic=topics.events,
        dead_letter_topic=topics.dead_letter,
        clock_topic=_clock_topic(config),
        membership_topic=topics.membership,
        events_key=topics.key,
        events_layout=topics.layout,
        envelope=topics.envelope(),
        client_options=config.kafka.client_options(),
        delivery_id=origin.delivery_id,
        markers_topic=_markers_topic(config),
        registry=configured_registry(config),
        frames_folder=None if is_submitted() else temporary_folder() / f"frames-{run_id}",
    )
