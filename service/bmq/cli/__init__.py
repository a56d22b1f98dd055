"""The command line. Each module has the commands of one purpose, and leaves all decisions to the library.

Every failure is one sentence on stderr with a way out, and an exit code: 0 fine, 1 failed, 2 wrong usage or
configuration. BMQ_DEBUG=1 shows the traceback.
"""

import typer

from bmq.cli import check_ledger, checkpoints, demo, doctor, events, query, serve
from bmq.cli.failures import Commands

app = typer.Typer(
    name="bmq",
    help="Standing queries over Kafka streams: one event when a stream enters or leaves a region.",
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.command("serve")(serve.serve)
app.command("broker")(serve.broker)
app.add_typer(query.app, name="query")
app.command("events")(events.events)
app.command("demo")(demo.demo)
app.command("check-ledger")(check_ledger.check_ledger)
app.add_typer(checkpoints.app, name="checkpoint")
app.command("doctor")(doctor.doctor)


def main() -> None:
    """Run the command that the arguments name, and exit."""
    app(prog_name="bmq")
