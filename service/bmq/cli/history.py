"""Recorded readings and the queries over them: what `bmq backtest` and `bmq forecast` have in common.

Imports the engine only inside of functions: it takes a second or two to load, and other commands do not need it.
"""

import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from bmq.cli.backtest_options import read_moment
from bmq.cli.target import USUAL_CONFIG, Target
from bmq.cli.terminal import show_line
from bmq.config import Config
from bmq.errors import ConfigError
from bmq.records import Feed, Installation
from bmq.wire.fault_texts import suggestion
from bmq.zones.desired_state import read_desired

if TYPE_CHECKING:
    from bmq.backtest.pieces import Sink, Source
    from bmq.backtest.replay import Moments, Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryOptions:
    """The options of the command line, as the user gave them; see `backtest_options`."""

    queries: Path
    feed: str
    inputs: Sequence[Path]
    put_at: str | None
    clock_end: str | None
    skip_other_feeds: bool
    bad_readings: Literal["refuse", "drop"]
    stream_id: str | None
    event_time: str | None
    text: Sequence[str]
    topic: str | None
    begin: str | None
    end: str | None


@dataclass(frozen=True, slots=True)
class History:
    """A history that is ready to be played.

    Attributes
    ----------
    installation : the rules for definitions, and one feed, with the columns of the input.
    definitions : query id -> definition, JSON.
    source : the readings.
    files : the files of the readings; empty: they are in a topic.
    """

    installation: Installation
    definitions: Mapping[str, bytes]
    moments: "Moments"
    source: "Source"
    files: Sequence[Path]


def find_history(target: Target, options: HistoryOptions) -> History:
    """Return the history that the options name.

    Raises
    ------
    ServiceError
        There is no such file, topic, feed or query, the options contradict the configuration, or the service would
        reject a definition.
    """
    _check_input(options)
    moments = read_moment("--put-at", options.put_at), read_moment("--clock-end", options.clock_end)
    config = _config_of(target)
    feed = _feed_of(config, options.feed)
    desired = read_desired(options.queries)

    from bmq.backtest.chosen_queries import choose
    from bmq.backtest.replay import Moments, put_all
    from bmq.library.local_shard import LocalShard

    definitions, others = choose(desired, feed.name, skip_others=options.skip_other_feeds)
    if others:
        show_line(f"left out: {len(others)} queries over other feeds", err=True)
    feed, source, files = _find_files(options, feed) if options.topic is None else _find_span(target, options, feed)
    installation = replace(config.installation(), feeds={feed.name: feed})
    put_all(LocalShard(installation), definitions)  # so that a mistake shows now, before there is any output
    return History(installation, definitions, Moments(*moments), source, files)


def play(history: History, definitions: Mapping[str, bytes], sinks: Sequence["Sink"]) -> tuple["Outcome", float]:
    """Apply the readings to definitions, with a bar on stderr; return what was counted, and the seconds.

    Parameters
    ----------
    sinks : each gets all events. It is finished at the end, or abandoned after a failure.
    """
    from bmq.backtest.replay import Replay
    from bmq.library.local_shard import LocalShard

    (feed,) = history.installation.feeds
    with ExitStack() as failed:
        for sink in sinks:
            failed.callback(sink.abandon)
        replay = Replay(LocalShard(history.installation), feed, definitions, history.moments, sinks)
        begin = time.monotonic()
        with _progress() as bar:
            task = bar.add_task("readings", total=history.source.total)
            outcome = replay.run(history.source.pieces(), lambda done: bar.update(task, completed=done))
        for sink in sinks:
            sink.finish()
        seconds = time.monotonic() - begin
        failed.pop_all()
    return outcome, seconds


def show_readings(outcome: "Outcome", seconds: float) -> None:
    """Show what a replay counted of readings."""
    counts = outcome.counts
    rate = counts.readings / seconds if seconds else 0.0
    show_line(f"{counts.readings:,} readings in {seconds:.1f} s, {rate:,.0f} readings/s")
    show_line(f"{outcome.n_streams:,} streams are known at the end")
    show_left_out(outcome, err=False)


def show_left_out(outcome: "Outcome", *, err: bool) -> None:
    """Show how many rows were not readings, and how many readings were late; on stderr, how many had no turn yet."""
    for reason, n in sorted(outcome.bad.items()):
        show_line(f"{n:,} {reason} are not readings", err=err)
    if outcome.counts.late:
        show_line(f"{outcome.counts.late:,} late readings, which changed nothing", err=err)
    if outcome.n_held:
        show_line(
            f"{outcome.n_held:,} readings are still held back by max_lateness; --clock-end TIME applies them, with a "
            "TIME later than the last reading and max_lateness",
            err=True,
        )


def _check_input(options: HistoryOptions) -> None:
    """Refuse options of files beside a topic, and the other way round."""
    if bool(options.inputs) == (options.topic is not None):
        raise typer.BadParameter("Name files of readings, or a topic with --topic: one of the two.", param_hint="INPUT")
    of_files = {"--stream-id": options.stream_id, "--event-time": options.event_time, "--text": options.text}
    of_topics = {"--from": options.begin, "--to": options.end}
    wrong, input_ = (of_topics, "a topic") if options.topic is None else (of_files, "files")
    for name, value in wrong.items():
        if value:
            raise typer.BadParameter(f"This is an option for {input_}. Leave it out.", param_hint=name)


def _find_files(options: HistoryOptions, feed: Feed) -> tuple[Feed, "Source", Sequence[Path]]:
    from bmq.backtest.reading_files import Columns, ReadingFiles, feed_of_tables

    feed = feed_of_tables(feed, Columns(options.stream_id, options.event_time))
    source = ReadingFiles(options.inputs, feed, options.bad_readings, options.text)
    return feed, source, source.files


def _find_span(target: Target, options: HistoryOptions, feed: Feed) -> tuple[Feed, "Source", Sequence[Path]]:
    from bmq.backtest.span_ends import find_offsets, read_span_end
    from bmq.backtest.topic_span import TopicSpan
    from bmq.kafka_io.schema_registry import configured_registry, schemas_of
    from bmq.kafka_io.topics import Topics

    assert options.topic is not None
    begin, end = read_span_end("--from", options.begin), read_span_end("--to", options.end)
    offsets = find_offsets(Topics(target.options()), options.topic, begin, end)
    feed = replace(feed, topic=options.topic, more_topics=(), join=False)
    schemas = schemas_of(configured_registry(_config_of(target)))
    return feed, TopicSpan(target.options(), feed, offsets, schemas), ()


def _config_of(target: Target) -> Config:
    if target.config is None:
        raise ConfigError(
            f"The feeds are those of a configuration, and there is no file {str(USUAL_CONFIG)!r}. Name one with "
            "--config FILE."
        )
    return target.config


def _feed_of(config: Config, name: str) -> Feed:
    feeds = config.feed_records()
    if name not in feeds:
        raise ConfigError(f"--feed is {name!r}, but the configuration has no such feed. {suggestion(name, feeds)}")
    return feeds[name]


def _progress() -> Progress:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    # A file or a pipe gets no bar. It goes to stderr, so that stdout has the results alone.
    return Progress(*columns, console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty())
