"""`bmq query apply` and `bmq query export`: the registered queries as files."""

import json
from pathlib import Path
from typing import Annotated

import typer

from bmq.cli.publishing import ManyTimeout, NoWait, installation_of, parsed, publish_many, readable, with_progress
from bmq.cli.target import BootstrapOption, ConfigOption, Target, find_target
from bmq.cli.terminal import show_line, show_lines
from bmq.client.client import REPLY_TIMEOUT_SECONDS
from bmq.errors import ControlError, ServiceError
from bmq.zones.checks import check_definition
from bmq.zones.definition_texts import diff_lines
from bmq.zones.desired_state import YAML_SUFFIXES, DesiredQuery, read_desired
from bmq.zones.state_changes import Action, Registered, count_changes, find_changes
from bmq.zones.yaml_texts import write_yaml

DIFFERENT = 3  # exit code of --dry-run; 1 and 2 are failures
OVER = ("rejected", "expired")  # statuses of definitions that are in the topic, but not in force


def apply(
    path: Annotated[
        Path,
        typer.Argument(metavar="FOLDER|FILE", help="JSON or YAML: the definitions of all queries.", show_default=False),
    ],
    prune: Annotated[
        str | None,
        typer.Option(
            "--prune",
            metavar="PREFIX",
            help="Delete the queries whose ids begin with PREFIX and that have no definition here.",
            show_default=False,
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the differences, and publish nothing; exit code 3 if there are any.")
    ] = False,
    no_wait: NoWait = False,
    timeout: ManyTimeout = REPLY_TIMEOUT_SECONDS,
    config: ConfigOption = None,
    bootstrap: BootstrapOption = None,
) -> None:
    """Make the registered queries those of a folder or file: put what is new or another, and leave the rest.

    A file has one definition, and its name without the suffix is the query id; or it has an object with query ids as
    names and definitions as values. Nothing is published if the service would reject one of them. No query is deleted
    without --prune, and with it only those with the prefix, which every id of the folder must have.
    """
    target = find_target(config, bootstrap)
    desired = read_desired(path)
    _check_all(target, desired)
    with target.client() as client:
        registered = {
            query_id: Registered(readable(query.definition), query.status)
            for query_id, query in client.queries().items()
        }
    definitions = {query_id: query.definition for query_id, query in desired.items()}
    changes = find_changes(definitions, registered, prune)
    if dry_run:
        for change in changes:
            if change.action is Action.REPEAT:
                show_line(f"repeat {change.query_id}, which the service rejected")
            for line in diff_lines(change.query_id, change.before, change.after):
                show_line(line)
    else:
        commands = {
            change.query_id: None if change.after is None else json.dumps(change.after).encode() for change in changes
        }
        publish_many(target, commands, timeout, no_wait=no_wait)
    show_line(count_changes(changes, len(desired)), err=True)
    if dry_run and changes:
        raise typer.Exit(DIFFERENT)


def export(
    file: Annotated[
        Path | None,
        typer.Argument(metavar="FILE", help="A .json or .yaml file to write.  [default: stdout]", show_default=False),
    ] = None,
    prefix: Annotated[
        str, typer.Option("--prefix", metavar="PREFIX", help="Only queries whose ids begin so.", show_default=False)
    ] = "",
    as_yaml: Annotated[bool, typer.Option("--yaml", help="Write YAML to stdout, and not JSON.")] = False,
    config: ConfigOption = None,
    bootstrap: BootstrapOption = None,
) -> None:
    """Write the registered queries as one file for `bmq query apply`.

    Definitions that the service rejected, and those whose time is over, are left out.
    """
    with find_target(config, bootstrap).client() as client:
        queries = [query for query in client.queries().values() if query.query_id.startswith(prefix)]
    kept = {}
    for query in sorted(queries, key=lambda query: query.query_id):
        definition = parsed(query.definition)
        if query.status in OVER or not isinstance(definition, dict):
            show_line(f"left out: {query.query_id}, which is {query.status}", err=True)
        else:
            kept[query.query_id] = definition
    is_yaml = as_yaml if file is None else file.suffix.lower() in YAML_SUFFIXES
    text = write_yaml(kept) if is_yaml else json.dumps(kept, indent=2, ensure_ascii=False) + "\n"
    if file is None:
        show_lines(text.removesuffix("\n"))
        return
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ServiceError(f"File {str(file)!r} cannot be written: {error.strerror}. Give another.") from None
    show_line(f"{len(kept)} queries are in {file}", err=True)


def _check_all(target: Target, desired: dict[str, DesiredQuery]) -> None:
    """Show each definition that the service would reject, and raise ServiceError if there is one."""
    installation = installation_of(target)
    n_refused = 0
    for query in with_progress("definitions", desired.values(), len(desired)):
        try:
            check_definition(query.query_id, json.dumps(query.definition).encode(), installation)
        except ControlError as error:
            n_refused += 1
            show_line(f"{query.file}: {query.query_id}: {error.code.value}: {error}", err=True)
    if n_refused:
        raise ServiceError(
            f"The service would reject {n_refused} of {len(desired)} definitions; see above. Nothing was published."
        )
