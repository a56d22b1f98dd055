"""The command line. Each module has the commands of one purpose, and leaves all decisions to the library.

Every failure is one sentence on stderr with a way out, and an exit code: 0 fine, 1 failed, 2 wrong usage or
configuration. BMQ_DEBUG=1 shows the traceback.
"""

import importlib.metadata
from typing import Annotated

import typer

from bmq.cli import (
    backtest,
    capacity,
    check_ledger,
    checkpoints,
    conformance,
    demo,
    doctor,
    events,
    forecast,
    init,
    package,
    query,
    serve,
    view,
)
from bmq.cli.failures import Commands
from bmq.cli.terminal import show_line

app = typer.Typer(
    name="bmq",
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.command("init")(init.init)
app.command("serve")(serve.serve)
app.command("broker")(serve.broker)
app.add_typer(query.app, name="query")
app.command("events")(events.events)
app.command("backtest")(backtest.backtest)
app.command("forecast")(forecast.forecast)
app.command("view")(view.view)
app.command("demo")(demo.demo)
app.command("check-ledger")(check_ledger.check_ledger)
app.add_typer(checkpoints.app, name="checkpoint")
app.command("capacity")(capacity.capacity)
app.command("conformance")(conformance.conformance)
app.command("package")(package.package)
app.command("doctor")(doctor.doctor)


def _show_version(asked: bool) -> None:
    if asked:
        try:
            version = importlib.metadata.version("bmq")
        except importlib.metadata.PackageNotFoundError:
            version = "of a checkout that is not installed"
        show_line(f"bmq {version}")
        raise typer.Exit


@app.callback()
def options(
    _: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version, and exit.")
    ] = False,
) -> None:
    """Standing queries over Kafka streams: one event when a stream enters or leaves a region."""


def main() -> None:
    """Run the command that the arguments name, and exit."""
    app(prog_name="bmq")
