"""`bmq doctor`: checks everything that the service needs, and reports what exists, what is missing, and what to do.

Changes nothing, except that it downloads missing jars, as the service does at its start.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import typer

from bmq.broker.ivy import pyspark_version, require_pyspark
from bmq.broker.jars import broker_jars, spark_jars
from bmq.broker.java import find_java
from bmq.broker.ports import require_free
from bmq.cli.doctor_clocks import look_at_clocks
from bmq.cli.doctor_machine import look_at_machine
from bmq.cli.findings import Finding, Level, attempt
from bmq.cli.target import BootstrapOption, ConfigOption, find_target
from bmq.cli.terminal import plain
from bmq.config import Config
from bmq.errors import ConfigError, ServiceError, SetupError, StateError
from bmq.kafka_io.schema_registry import SchemaRegistry, configured_registry
from bmq.kafka_io.topics import Topics

_COLORS = {Level.OK: "green", Level.WARN: "yellow", Level.FAIL: "red"}


def doctor(config: ConfigOption = None, bootstrap: BootstrapOption = None) -> None:
    """Check Java, jars, Kafka, topics, checkpoint and machine, and say what to do. Exit code 1 if anything fails."""
    target = find_target(config, bootstrap)
    if target.config is None:
        raise ConfigError("There is no configuration to check. Name one: bmq doctor --config config/mine.toml")
    servers = bootstrap or target.config.kafka.bootstrap_servers
    failed = False
    for finding in examine(target.config, servers):
        failed |= finding.level is Level.FAIL
        level = typer.style(f"{finding.level:<4}", fg=_COLORS[finding.level])
        typer.echo(f"{level}  {plain(f'{finding.what}: {finding.text}')}")
    if failed:
        raise typer.Exit(1)


def examine(config: Config, servers: str | None) -> Iterator[Finding]:
    """Return the findings, in the order of the service's own start.

    Parameters
    ----------
    servers : the address of Kafka; None: the service would start its own.
    """
    yield attempt("Java", lambda: f"{find_java()}")
    yield attempt("PySpark", lambda: require_pyspark(pyspark_version()))
    yield attempt("Jars for Spark", lambda: f"{len(spark_jars())} jars")
    if servers is None:
        yield attempt("Kafka's jars", lambda: f"{len(broker_jars())} jars")
        yield Finding(
            Level.WARN,
            "Kafka",
            "no kafka.bootstrap_servers is configured, so the service starts a Kafka of its own, for this "
            "machine only. For more than a trial, set it.",
        )
    else:
        yield from _kafka(config, servers)
    joining = [name for name, feed in config.feeds.items() if feed.join]
    if len(joining) == 1:
        yield Finding(
            Level.WARN,
            f"feeds.{joining[0]}",
            "join = true, and no other feed has it: no join can use the feed, and all its readings go to every shard "
            "for nothing. Set it on a second feed, or leave it out.",
        )
    yield attempt("checkpoint", lambda: _checkpoint(config))
    folder = _local_folder(config.job.checkpoint)
    yield from look_at_machine(None if folder is None else _nearest(folder))
    yield attempt("metrics", lambda: _metrics_port(config.metrics.port))


def _kafka(config: Config, servers: str) -> Iterator[Finding]:
    try:
        topics = Topics(config.with_broker(servers).kafka.client_options())
        there = topics.partitions()
    except SetupError as error:
        yield Finding(Level.FAIL, "Kafka", str(error))
        return
    yield Finding(Level.OK, "Kafka", f"answers at {servers}")
    yield _control_topic(topics, config.topics.control)
    for role in ("replies", "events", "dead_letter"):
        yield _topic(f"topics.{role}", getattr(config.topics, role), there)
    feeds = config.feed_records().values()
    if any(feed.idle_advance_ms is not None for feed in feeds):
        yield _topic("topics.clock", config.topics.clock, there)
    if config.topics.membership is not None:
        yield _membership_topic(topics, config.topics.membership)
    for name, feed in config.feeds.items():
        for topic in feed.every_topic:
            yield _topic(f"feeds.{name}", topic, there)
    if any(feed.needs_registry for feed in config.feeds.values()):
        yield attempt("registry", lambda: _registry(config))
    outputs = {config.topics.replies, config.topics.events, config.topics.dead_letter} & there.keys()
    for name, why in topics.unusable(outputs).items():
        yield Finding(
            Level.FAIL, name, f"the service cannot write to this topic: {why}. docs/operations.md has the rights."
        )
    try:
        yield from look_at_clocks(config, topics)
    except ServiceError as error:
        yield Finding(Level.FAIL, "clocks", str(error))
    folder = _local_folder(config.job.checkpoint)
    if folder is not None:
        from bmq.cli.doctor_offsets import look_at_offsets  # not at the top, for the same reason as in `_checkpoint`

        try:
            yield from look_at_offsets(config, topics, folder)
        except ServiceError as error:
            yield Finding(Level.FAIL, "offsets", str(error))


def _registry(config: Config) -> str:
    address = configured_registry(config)
    assert address is not None  # the configuration checks this
    SchemaRegistry(address).ping()
    return f"answers at {address.url}"


def _control_topic(topics: Topics, name: str) -> Finding:
    what = "topics.control"
    state = topics.state(name)
    if state is None:
        return _topic(what, name, {})
    if state.n_partitions != 1:
        return Finding(
            Level.FAIL,
            what,
            f"{name} has {state.n_partitions} partitions, but commands keep their order in one only. "
            "Name another topic, or delete this one and put the queries again.",
        )
    if not state.compacted:
        return Finding(
            Level.WARN,
            what,
            f"{name} is not compacted: Kafka will delete old queries, and a new checkpoint will not find "
            "them. Set cleanup.policy=compact on it.",
        )
    return Finding(Level.OK, what, f"{name}, 1 partition, compacted")


def _membership_topic(topics: Topics, name: str) -> Finding:
    what = "topics.membership"
    state = topics.state(name)
    if state is None:
        return _topic(what, name, {})
    if not state.compacted:
        return Finding(
            Level.WARN,
            what,
            f"{name} is not compacted: it grows without end, or forgets who is inside. Set cleanup.policy=compact on "
            "it.",
        )
    return Finding(Level.OK, what, f"{name}, {state.n_partitions} partitions, compacted")


def _topic(what: str, name: str, partitions: dict[str, int]) -> Finding:
    if name in partitions:
        return Finding(Level.OK, what, f"{name}, {partitions[name]} partitions")
    return Finding(
        Level.WARN,
        what,
        f"{name} is not there. The service makes it at its start; make it first to choose its options.",
    )


def _checkpoint(config: Config) -> str:
    # Not at the top: it imports Spark, which would delay the earlier findings.
    from bmq.job.checkpoint import FILE, SPARKS_FILES, must_be_new, must_fit, read_origin

    location = config.job.checkpoint
    folder = _local_folder(location)
    if folder is None:
        return f"{location}: not looked at, since only Spark can reach it"
    nearest = _nearest(folder)
    if not nearest.is_dir() or not os.access(nearest, os.W_OK):
        raise ConfigError(f"{folder} cannot be written ({nearest} forbids it). Name another folder as job.checkpoint.")
    written = folder / FILE
    if not written.exists():
        must_be_new([name for name in SPARKS_FILES if (folder / name).exists()], location)
        return f"{location}: new; readings are taken from the {config.job.starting_offsets} offsets on"
    try:
        text = written.read_bytes()
    except OSError as error:
        raise StateError(f"{written} cannot be read ({error}). Give this user the right to.") from error
    origin = read_origin(text, location)
    must_fit(origin, location, config.job.shards, config.feed_records())
    return f"{location}: {origin.shards} shards"


def _local_folder(location: str) -> Path | None:
    """Return the folder of a checkpoint; None: it is not on a file system of this machine."""
    scheme, colon, path = location.partition(":")
    if colon and scheme != "file":
        return None
    return Path(path.removeprefix("//") if colon else location).absolute()


def _nearest(folder: Path) -> Path:
    """Return the folder, or the nearest one above it that is there."""
    return next(place for place in [folder, *folder.parents] if place.exists())


def _metrics_port(port: int) -> str:
    try:
        require_free(port)
    except SetupError:
        return f"port {port}: something listens there already; if that is the service, all is well"
    return f"port {port or 'of any number'} is free"
