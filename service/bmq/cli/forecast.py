"""`bmq forecast`: how noisy queries are, and what options against noise would leave."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.table import Table

from bmq.cli.backtest_options import (
    BadReadingsOption,
    ClockEndOption,
    CooldownOption,
    EventTimeOption,
    ExitMarginOption,
    FeedOption,
    FromOption,
    InputArgument,
    JsonOption,
    PlotOption,
    PutAtOption,
    QueriesOption,
    ReturnsOption,
    SkipOption,
    StayForOption,
    StreamIdOption,
    TextOption,
    ToOption,
    TopicOption,
)
from bmq.cli.history import HistoryOptions, find_history, play, show_left_out, show_readings
from bmq.cli.target import BootstrapOption, ConfigOption, find_target
from bmq.cli.terminal import plain, show_line
from bmq.wire.durations import read_positive_duration

if TYPE_CHECKING:
    from bmq.backtest.noise_counts import QueryNoise
    from bmq.backtest.variants import Variant

STAY_FOR, COOLDOWN, EXIT_MARGIN = ("10s", "1m", "5m"), ("1m", "10m", "1h"), ("2%", "5%", "10%")
RETURNS_WITHIN = "1m"
TABLE_WIDTH = 10_000  # characters; no table is so wide


def forecast(
    queries: QueriesOption,
    feed: FeedOption,
    inputs: InputArgument = None,
    topic: TopicOption = None,
    begin: FromOption = None,
    end: ToOption = None,
    stay_for: StayForOption = None,
    cooldown: CooldownOption = None,
    exit_margin: ExitMarginOption = None,
    returns_within: ReturnsOption = RETURNS_WITHIN,
    plot: PlotOption = None,
    as_json: JsonOption = False,
    put_at: PutAtOption = None,
    clock_end: ClockEndOption = None,
    skip_other_feeds: SkipOption = False,
    bad_readings: BadReadingsOption = "refuse",
    stream_id: StreamIdOption = None,
    event_time: EventTimeOption = None,
    text: TextOption = None,
    config: ConfigOption = None,
    bootstrap: BootstrapOption = None,
) -> None:
    """Show how many events queries have over recorded readings, and how many an option against noise would leave.

    Each option in each size is applied to the history, in place of the query's own option of this name. A size of time
    is like 90s; --put-at and --clock-end are RFC 3339, or epoch milliseconds.
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
    returns_within_ms = _read_returns_within(returns_within)

    from bmq.backtest.noise_counts import NoiseCounts, StreamsSeen
    from bmq.backtest.noise_plot import check_plot, plot_forecast
    from bmq.backtest.variants import put_variants

    variants = _variants(stay_for or STAY_FOR, cooldown or COOLDOWN, exit_margin or EXIT_MARGIN)
    if plot is not None:
        check_plot(plot)
    history = find_history(find_target(config, bootstrap), options)
    definitions, installation = put_variants(history.definitions, variants, history.installation)
    seen = StreamsSeen(history.source)
    counts = NoiseCounts(list(history.definitions), variants, returns_within_ms)

    outcome, seconds = play(replace(history, installation=installation, source=seen), definitions, [counts])

    rows = counts.forecast(outcome, len(seen), definitions, _named_streams(history.definitions))
    if as_json:
        for row in rows:
            show_line(json.dumps(_as_json(row, variants), ensure_ascii=False))
        show_left_out(outcome, err=True)
    else:
        show_readings(outcome, seconds)
        show_line(f"{outcome.days:,.2f} days, {len(seen):,} streams")
        _print_table(rows, variants, returns_within)
    if plot is not None:
        plot_forecast(plot, rows, variants)
        show_line(f"plot: {plot}", err=True)


def _read_returns_within(text: str) -> int:
    try:
        return read_positive_duration(text)
    except ValueError as error:
        raise typer.BadParameter(f"{text!r}: {error}.", param_hint="--returns-within") from None


def _variants(stay_for: Sequence[str], cooldown: Sequence[str], exit_margin: Sequence[str]) -> list["Variant"]:
    from bmq.backtest.variants import NoiseOption, Variant

    found: list[Variant] = []
    sizes_by_option = {
        ("--stay-for", NoiseOption.STAY_FOR): stay_for,
        ("--cooldown", NoiseOption.COOLDOWN): cooldown,
        ("--exit-margin", NoiseOption.EXIT_REGION): exit_margin,
    }
    for (name, option), sizes in sizes_by_option.items():
        for size in sizes:
            try:
                found.append(Variant(option, size))
            except ValueError as error:
                raise typer.BadParameter(f"{size!r}: {error}.", param_hint=name) from None
    return found


def _named_streams(definitions: Mapping[str, bytes]) -> dict[str, int]:
    """Return query id -> how many streams it names, for the queries that name some."""
    streams = ((query_id, json.loads(definition).get("streams")) for query_id, definition in definitions.items())
    return {query_id: len(set(named)) for query_id, named in streams if named}


def _as_json(row: "QueryNoise", variants: Sequence["Variant"]) -> dict[str, Any]:
    left: dict[str, dict[str, float | None]] = {}
    for variant, share in zip(variants, row.left, strict=True):
        left.setdefault(variant.option.value, {})[variant.size] = share
    return {
        "query_id": row.query_id,
        "events": row.events,
        "events_per_stream_day": row.per_stream_day,
        "returns": row.returns,
        "left": left,
    }


def _print_table(rows: Sequence["QueryNoise"], variants: Sequence["Variant"], returns_within: str) -> None:
    headers = [f"{variant.option.upper()}\n{variant.size}" for variant in variants]
    table = Table("QUERY", box=None, pad_edge=False)
    for header in ("EVENTS", "A STREAM\nAND DAY", f"RETURNS\n{returns_within}", *headers):
        table.add_column(header, justify="right")
    for row in rows:
        rate = "-" if row.per_stream_day is None else f"{row.per_stream_day:,.3g}"
        shares = _percents([row.returns, *row.left])
        table.add_row(plain(row.query_id), f"{row.events:,}", rate, *shares)
    # A table fits itself into a terminal and cuts numbers for that; a terminal wraps a long line by itself. On a dumb
    # terminal, a width counts only with a height.
    Console(markup=False, width=TABLE_WIDTH, height=1).print(table)


def _percents(shares: Iterable[float | None]) -> list[str]:
    return ["-" if share is None else f"{share:.0%}" for share in shares]
