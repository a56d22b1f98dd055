"""The options of `bmq backtest` and `bmq forecast`, and how their texts are read."""

from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer

from bmq.errors import ReadingError
from bmq.wire.event_times import read_time_option

Option = partial(typer.Option, show_default=False)

InputArgument = Annotated[
    list[Path] | None,
    typer.Argument(metavar="INPUT", help="Parquet and CSV files, or folders of them.", show_default=False),
]
QueriesOption = Annotated[
    Path, Option("--queries", metavar="FOLDER|FILE", help="JSON or YAML, as for `bmq query apply`.")
]
FeedOption = Annotated[str, Option("--feed", metavar="NAME", help="The feed of the readings.")]
OutOption = Annotated[Path | None, Option("--out", metavar="FILE", help="A .parquet or .csv file for the events.")]
OutTopicOption = Annotated[
    str | None, Option("--out-topic", metavar="NAME", help="A new topic for the events, as messages of the service.")
]
TopicOption = Annotated[
    str | None, Option("--topic", metavar="NAME", help="Read the readings from this topic, and not from files.")
]
FromOption = Annotated[
    str | None,
    Option(
        "--from",
        metavar="TIME|OFFSETS",
        help="With --topic: from the first record of this timestamp in each partition, or from these offsets, such as "
        "0:1200,1:1180.  [default: the first record]",
    ),
]
ToOption = Annotated[
    str | None,
    Option(
        "--to",
        metavar="TIME|OFFSETS",
        help="With --topic: up to the record before this timestamp, or before these offsets.  [default: the end]",
    ),
]
SparkOption = Annotated[
    bool,
    typer.Option(
        "--spark",
        help="Run on Spark, by shard, over files: --out is a new folder that all executors can write to. With "
        "spark-submit on its cluster, otherwise on the cores of this machine.",
    ),
]
OverwriteOption = Annotated[bool, typer.Option("--overwrite", help="Replace the file if it is there.")]
PutAtOption = Annotated[
    str | None,
    Option(
        "--put-at",
        metavar="TIME",
        help="Put the queries before the first reading of this event time or later.  [default: before all readings]",
    ),
]
ClockEndOption = Annotated[
    str | None,
    Option(
        "--clock-end",
        metavar="TIME",
        help="Move the clock of the feed to this time after the last reading, so that what is due by then happens.",
    ),
]
SkipOption = Annotated[bool, typer.Option("--skip-other-feeds", help="Leave out queries over other feeds.")]
BadReadingsOption = Annotated[
    Literal["refuse", "drop"],
    typer.Option("--bad-readings", help="A row of a file that is not a reading ends the run, or is dropped."),
]
StreamIdOption = Annotated[
    str | None,
    Option("--stream-id", metavar="COLUMN", help="The column of files with the stream id, if it has another name."),
]
EventTimeOption = Annotated[
    str | None,
    Option("--event-time", metavar="COLUMN", help="The column of files with the event time, if it has another name."),
]
TextOption = Annotated[
    list[str] | None,
    Option(
        "--text",
        metavar="COLUMN",
        help="An attribute of CSV files that is text, also if it reads as a number; may be repeated.",
    ),
]
StayForOption = Annotated[
    list[str] | None,
    Option("--stay-for", metavar="TIME", help="A size of `stay_for`; may be repeated.  [default: 10s, 1m, 5m]"),
]
CooldownOption = Annotated[
    list[str] | None,
    Option("--cooldown", metavar="TIME", help="A size of `cooldown`; may be repeated.  [default: 1m, 10m, 1h]"),
]
ExitMarginOption = Annotated[
    list[str] | None,
    Option(
        "--exit-margin",
        metavar="NUMBER|PERCENT",
        help="By how much an `exit_region` is larger than the region at each side, in the unit of the dimensions or as "
        "a share of its width; may be repeated.  [default: 2%, 5%, 10%]",
    ),
]
ReturnsOption = Annotated[
    str,
    typer.Option(
        "--returns-within", metavar="TIME", help="A stream that enters again so soon after it left has returned."
    ),
]
PlotOption = Annotated[
    Path | None, Option("--plot", metavar="FILE", help="Also write a plot, a .png, .svg or .pdf file.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Write JSON, one object a line.")]


def read_moment(option: str, text: str | None) -> int | None:
    """Return a time of an option as epoch milliseconds; None: the option was not given."""
    if text is None:
        return None
    try:
        return read_time_option(option, text)
    except ReadingError as error:
        raise typer.BadParameter(f"{error}.", param_hint=option) from None
