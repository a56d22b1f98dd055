"""`bmq backtest`: the events of queries over recorded readings."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from bmq.cli.backtest_options import (
    BadReadingsOption,
    ClockEndOption,
    EventTimeOption,
    FeedOption,
    FromOption,
    InputArgument,
    OutOption,
    OutTopicOption,
    OverwriteOption,
    PutAtOption,
    QueriesOption,
    SkipOption,
    SparkOption,
    StreamIdOption,
    TextOption,
    ToOption,
    TopicOption,
)
from bmq.cli.history import History, HistoryOptions, find_history, play, show_readings
from bmq.cli.history_on_spark import play_on_spark
from bmq.cli.target import BootstrapOption, ConfigOption, Target, find_target
from bmq.cli.terminal import show_line

if TYPE_CHECKING:
    from bmq.backtest.pieces import Sink


def backtest(
    queries: QueriesOption,
    feed: FeedOption,
    inputs: InputArgument = None,
    topic: TopicOption = None,
    begin: FromOption = None,
    end: ToOption = None,
    out: OutOption = None,
    out_topic: OutTopicOption = None,
    overwrite: OverwriteOption = False,
    put_at: PutAtOption = None,
    clock_end: ClockEndOption = None,
    skip_other_feeds: SkipOption = False,
    bad_readings: BadReadingsOption = "refuse",
    stream_id: StreamIdOption = None,
    event_time: EventTimeOption = None,
    text: TextOption = None,
    spark: SparkOption = False,
    config: ConfigOption = None,
    bootstrap: BootstrapOption = None,
) -> None:
    """Apply queries to recorded readings of a feed, and write the events that the service would emit.

    Readings are applied in the order of the input. Those of a topic
    are applied in the order of their timestamps. TIME is RFC 3339, or epoch milliseconds.
    """
    options = HistoryOptions(
        queries=queries,
        feed=feed,
        inputs=inputs or (),
        put_at=put_at,
        clock_end=clock_end,
        skip_other_feeds=skip_other_feeds,
        bad_readings=bad_readings,
        stream_id=stream_id,
        event_time=event_time,
        text=text or (),
        topic=topic,
        begin=begin,
        end=end,
    )
    target = find_target(config, bootstrap)
    if spark:
        _refuse_beside_spark({"--topic": topic, "--out-topic": out_topic, "--put-at": put_at, "--overwrite": overwrite})
    history = find_history(target, options)
    if spark:
        outcome, seconds = play_on_spark(history, target, options, out)
    else:
        sinks = _sinks(history, target, out, out_topic, overwrite=overwrite)
        outcome, seconds = play(history, history.definitions, sinks)
    show_readings(outcome, seconds)
    if outcome.expired:
        show_line(f"{len(outcome.expired):,} queries ended by their ttl or expires_at")
    if outcome.counts.suppressed:
        show_line(f"{outcome.counts.suppressed:,} events suppressed by cooldown or max_events")
    places = [str(out)] if out is not None else []
    places += [f"topic {out_topic}"] if out_topic is not None else []
    where = f", in {' and '.join(places)}" if places else ""
    show_line(f"{outcome.counts.events:,} events of {len(history.definitions):,} queries{where}")


def _refuse_beside_spark(options: dict[str, object]) -> None:
    for name, value in options.items():
        if value:
            raise typer.BadParameter("This does not go with --spark. Leave one of the two out.", param_hint=name)


def _sinks(
    history: History, target: Target, out: Path | None, out_topic: str | None, *, overwrite: bool
) -> list["Sink"]:
    """Return the outputs. The topic comes last: a refused file must not leave a topic behind."""
    feeds = history.installation.feeds
    sinks: list[Sink] = []
    if out is not None:
        from bmq.backtest.event_files import EventFile

        sinks.append(EventFile(out, feeds, history.files, overwrite=overwrite))
    if out_topic is not None:
        from bmq.backtest.event_topic import EventTopic, MessageForm

        assert target.config is not None  # find_history refuses it
        topics = target.topics
        all_feeds = (*target.config.feed_records().values(), *feeds.values())
        of_feeds = {topic for feed in all_feeds for topic in feed.topics}
        used = {topics.events, *topics.reserved(), *of_feeds}
        form = MessageForm(topics.key, topics.layout, topics.envelope())
        try:
            sinks.append(EventTopic(out_topic, feeds, target.options(), used, form))
        except BaseException:
            for sink in sinks:
                sink.abandon()
            raise
    return sinks
