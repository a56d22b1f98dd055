"""Writes docs/cli.md from the commands themselves: `python -m bmq.cli.cli_reference > docs/cli.md`."""

from collections.abc import Iterator
from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from bmq.cli import app

WIDTH = 100  # characters in a line of help, independent of the terminal

INTRODUCTION = """\
# Command line

Written by `make reference` from the commands' own help; `bmq COMMAND --help` says the same.

Exit codes: 0 fine, 1 failed, 2 wrong usage or configuration. Whatever goes wrong is one sentence on stderr
that says what to do; `BMQ_DEBUG=1` shows also where it came from.

The client commands (`query`, `events`, `check-ledger`) find the service by its configuration,
`config/local.toml` unless `--config` names another. Without one they talk to `localhost:9092`, where
`bmq serve` puts a Kafka of its own. With one, `query put` checks a definition completely before it publishes:
one that the service rejects would still replace, in the compacted control topic, the definition in force.

```console
$ echo '{"kind": "border", "feed": "stocks", "region": {"box": {"price": [40, 50]}}}' > forties.json
$ bmq query put forties forties.json
accepted: forties, version 1
$ bmq events --query forties --limit 1
2026-01-05 14:30:00.250 AAPL entered forties at price=40.25 (moved)
$ bmq query rm forties
deleted: forties, version 2
```
"""


def reference() -> str:
    """Return the text of docs/cli.md."""
    return "\n".join([INTRODUCTION, *_sections(get_command(app), "bmq", None)])


def _sections(command: Any, name: str, parent: typer.Context | None) -> Iterator[str]:
    context = typer.Context(command, info_name=name, parent=parent, terminal_width=WIDTH)
    yield f"## {context.command_path}\n\n```text\n{command.get_help(context)}\n```\n"
    if isinstance(command, TyperGroup):
        for child_name, child in command.commands.items():
            yield from _sections(child, child_name, context)


if __name__ == "__main__":
    print(reference(), end="")
