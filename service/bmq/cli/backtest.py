"""`bmq backtest`: the events of queries over recorded readings."""

import typer

from bmq.cli.backtest_options import (
    BadReadingsOption,
    ClockEndOption,
    EventTimeOption,
    FeedOption,
    InputArgument,
    OutOption,
    OverwriteOption,
    PutAtOption,
    QueriesOption,
    SkipOption,
    StreamIdOption,
    TextOption,
)
from bmq.cli.history import HistoryOptions, find_history, play, show_readings
from bmq.cli.target import ConfigOption, find_target
from bmq.cli.terminal import show_line


def backtest(
    queries: QueriesOption,
    feed: FeedOption,
    inputs: InputArgument = None,
    out: OutOption = None,
    overwrite: OverwriteOption = False,
    put_at: PutAtOption = None,
    clock_end: ClockEndOption = None,
    skip_other_feeds: SkipOption = False,
    bad_readings: BadReadingsOption = "refuse",
    stream_id: StreamIdOption = None,
    event_time: EventTimeOption = None,
    text: TextOption = None,
    config: ConfigOption = None,
) -> None:
    """Apply queries to recorded readings of a feed, and write the events that the service would emit.

    Readings are applied in the order of the input. TIME is RFC 3339, or epoch milliseconds.
    """
    if not inputs:
        raise typer.BadParameter("Name a file of readings, or a folder of them.", param_hint="INPUT")
    options = HistoryOptions(
        queries, feed, inputs, put_at, clock_end, skip_other_feeds, bad_readings, stream_id, event_time, text or ()
    )
    history = find_history(find_target(config, None), options)

    from bmq.backtest.event_files import EventFile

    sinks = []
    if out is not None:
        sinks.append(EventFile(out, history.installation.feeds, history.files, overwrite=overwrite))
    outcome, seconds = play(history, history.definitions, sinks)
    show_readings(outcome, seconds)
    if outcome.expired:
        show_line(f"{len(outcome.expired):,} queries ended by their ttl or expires_at")
    if outcome.counts.suppressed:
        show_line(f"{outcome.counts.suppressed:,} events suppressed by cooldown or max_events")
    where = "" if out is None else f", in {out}"
    show_line(f"{outcome.counts.events:,} events of {len(history.definitions):,} queries{where}")
