"""`bmq checkpoint`: what is in a checkpoint, as lines or files, and a new one with other shards or options of feeds.

The checkpoints are folders of this machine. Every command only reads the checkpoint that is there.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bmq.cli.target import USUAL_CONFIG
from bmq.cli.terminal import show_line
from bmq.config import load_config

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from bmq.job.stored_state import StoredCheckpoint
    from bmq.job.upgrade import Upgrade

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")  # two characters at least, as in s3a://bucket/folder

app = typer.Typer(
    help="Look at a checkpoint, and write its content as a new one that fits another configuration.",
    no_args_is_help=True,
)


def _on_this_machine(path: Path) -> Path:
    """Return the path; refuse a URI, of which `Path` would make a folder with a colon in its name."""
    scheme = _SCHEME.match(str(path))
    if scheme is None:
        return path
    if scheme[1] == "file":
        raise typer.BadParameter(f"{str(path)!r} is a URI. Write the folder without file:.")
    raise typer.BadParameter(
        f"{scheme[1]!r} is another file system, and this command works on folders of this machine. Stop the service, "
        "copy the whole checkpoint here (docs/storage.md), and name the copy."
    )


OldArgument = Annotated[
    Path,
    typer.Argument(metavar="OLD", help="The folder of the checkpoint. It is only read.", callback=_on_this_machine),
]
NewArgument = Annotated[
    Path, typer.Argument(metavar="NEW", help="The folder of the new checkpoint.", callback=_on_this_machine)
]


@app.command()
def show(
    path: Annotated[
        Path, typer.Argument(metavar="PATH", help="The folder of the checkpoint.", callback=_on_this_machine)
    ],
) -> None:
    """Show format, shards, queries, streams, offsets, age and size of a checkpoint."""
    # Not at the top, as in `doctor`: it imports Spark and the kernels.
    from bmq.job.checkpoint_report import report
    from bmq.job.stored_state import StoredCheckpoint

    checkpoint = StoredCheckpoint(path)
    kept = f"Nothing has changed. If the service runs, stop it, or try again. ({path})"
    with _spark(checkpoint.origin.shards, kept) as spark:
        for line in report(spark, checkpoint):
            show_line(line)


@app.command()
def export(
    path: Annotated[
        Path,
        typer.Argument(
            metavar="PATH", help="The folder of the checkpoint. It is only read.", callback=_on_this_machine
        ),
    ],
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER", help="Where the files go: a folder that is not there.", callback=_on_this_machine
        ),
    ],
) -> None:
    """Write the streams of a checkpoint as Parquet, a file for each feed, and its queries as lines of JSON.

    The definitions of the queries are in the control topic: `bmq query export` writes them.
    """
    from bmq.job.checkpoint_export import write_content
    from bmq.job.rescaling import must_be_free
    from bmq.job.stored_state import StoredCheckpoint

    must_be_free(folder)
    checkpoint = StoredCheckpoint(path)
    kept = f"{path} is as it was, and {folder} was removed. If its service runs, stop it."
    with _spark(checkpoint.origin.shards, kept) as spark:
        for line in write_content(spark, checkpoint, folder):
            show_line(line)


@app.command()
def rescale(
    old: OldArgument,
    new: NewArgument,
    shards: Annotated[int, typer.Option(min=1, max=1024, help="Into how many parts to divide the streams.")],
) -> None:
    """Write a new checkpoint with the content of an old one and another number of shards; stop the service first.

    A service with job.checkpoint = NEW and job.shards = SHARDS goes on where the old one stopped. Never start one on
    OLD again: both would write the same events.
    """
    from bmq.job.rescaling import must_be_free
    from bmq.job.stored_state import StoredCheckpoint

    must_be_free(new)
    _write(StoredCheckpoint(old), new, shards, None)
    show_line(
        f"{new} has the content of {old}, in {shards} shards. Set job.checkpoint to it and job.shards = {shards}, and "
        "start the service."
    )


@app.command()
def upgrade(
    old: OldArgument,
    new: NewArgument,
    config: Annotated[Path, typer.Option("--config", help="The new configuration of the service.")] = USUAL_CONFIG,
) -> None:
    """Write a new checkpoint with the content of an old one that fits a configuration; stop the service first.

    The configuration may have more attributes of a feed, behind the old ones, and another job.shards. The new
    attributes are null in every reading that OLD has read, whatever its record had. Other changes are refused, with the
    reasons. A new feed needs no upgrade. Never start a service on OLD again: both would write the same events.
    """
    from bmq.job.rescaling import must_be_free
    from bmq.job.stored_state import StoredCheckpoint
    from bmq.job.upgrade import upgrade_to

    loaded = load_config(config)
    must_be_free(new)
    checkpoint = StoredCheckpoint(old)
    changes = upgrade_to(checkpoint.origin, loaded.feed_records())
    _write(checkpoint, new, loaded.job.shards, changes)
    added = "".join(f", with {n} more attribute{'s' * (n > 1)} of feed {feed}" for feed, n in changes.n_new.items())
    show_line(
        f"{new} has the content of {old}, in {loaded.job.shards} shards{added}. Set job.checkpoint to it in {config}, "
        "and start the service."
    )


def _write(old: "StoredCheckpoint", new: Path, shards: int, changes: "Upgrade | None") -> None:
    """Write the new checkpoint."""
    from bmq.job.rescaling import must_be_at_rest, write_rescaled

    must_be_at_rest(old)
    with _spark(shards, f"{old.folder} is as it was, and {new} was removed.") as spark:
        write_rescaled(spark, old, new, shards, changes)


@contextmanager
def _spark(shards: int, kept: str) -> "Iterator[SparkSession]":
    """Yield a session that ends with the block; an error of Spark in it becomes a sentence, with ``kept``."""
    from bmq.job.failed_query import explained
    from bmq.job.session import make_session

    spark = make_session(shards)
    try:
        with explained(kept=kept):
            yield spark
    finally:
        spark.stop()
