"""Shows failures to the user of a command."""

import logging
import traceback
from typing import Any

import typer
from confluent_kafka import KafkaException
from typer.core import TyperGroup

from bmq.cli.log_lines import debugging, is_json
from bmq.cli.terminal import show_lines
from bmq.errors import ServiceError


class Commands(TyperGroup):
    """The commands, with every error turned into one sentence and an exit code.

    Here and not in `main`, so that tests that invoke the commands see the same as users.
    """

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except (typer.Exit, typer.Abort, typer.TyperException, BrokenPipeError):
            raise  # Typer itself handles these: wrong usage, `--help`, a closed pipe
        except KeyboardInterrupt:
            _say("Interrupted.")
            raise typer.Exit(1) from None
        except ServiceError as error:
            _say(str(error))
            raise typer.Exit(error.exit_code) from None
        except KafkaException as error:
            _say(f"Kafka: {error.args[0]}. Check that the broker is well: bmq doctor")
            raise typer.Exit(1) from None
        except Exception as error:
            _say(
                f"This should not happen: {type(error).__name__}: {error}. "
                "Run it again with BMQ_DEBUG=1 and report what it prints."
            )
            raise typer.Exit(1) from None


def _say(sentence: str) -> None:
    if is_json():
        logging.getLogger("bmq").error("%s", sentence, exc_info=debugging())
        return
    if debugging():
        typer.echo(traceback.format_exc(), err=True)
    show_lines(f"bmq: {sentence}", err=True)
