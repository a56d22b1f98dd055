"""`bmq checkpoint`: what is in a checkpoint, and a new checkpoint with another number of shards.

The checkpoints are folders of this machine. Every command only reads the checkpoint that is there.
"""

from pathlib import Path
from typing import Annotated

import typer

from bmq.cli.terminal import show_line

app = typer.Typer(help="Look at a checkpoint, and divide it into another number of shards.", no_args_is_help=True)

OldArgument = Annotated[Path, typer.Argument(metavar="OLD", help="The folder of the checkpoint. It is only read.")]
NewArgument = Annotated[Path, typer.Argument(metavar="NEW", help="The folder of the new checkpoint.")]


@app.command()
def show(path: Annotated[Path, typer.Argument(metavar="PATH", help="The folder of the checkpoint.")]) -> None:
    """Show format, shards, queries, streams, offsets, age and size of a checkpoint."""
    # Not at the top, as in `doctor`: it imports Spark and the kernels.
    from bmq.job.checkpoint_report import report
    from bmq.job.failed_query import explained
    from bmq.job.session import make_session
    from bmq.job.stored_state import StoredCheckpoint

    checkpoint = StoredCheckpoint(path)
    spark = make_session(checkpoint.origin.shards)
    try:
        with explained(kept=f"Nothing has changed. If the service runs, stop it, or try again. ({path})"):
            for line in report(spark, checkpoint):
                show_line(line)
    finally:
        spark.stop()


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
    from bmq.job.failed_query import explained
    from bmq.job.rescaling import must_be_at_rest, must_be_free, write_rescaled
    from bmq.job.session import make_session
    from bmq.job.stored_state import StoredCheckpoint

    must_be_free(new)
    checkpoint = StoredCheckpoint(old)
    must_be_at_rest(checkpoint)
    spark = make_session(shards)
    try:
        with explained(kept=f"{old} is as it was, and {new} was removed."):
            write_rescaled(spark, checkpoint, new, shards)
    finally:
        spark.stop()
    show_line(
        f"{new} has the content of {old}, in {shards} shards. Set job.checkpoint to it and job.shards = {shards}, and "
        "start the service."
    )
