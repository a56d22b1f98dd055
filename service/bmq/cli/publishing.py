"""Publishes commands and shows the replies: what `query put`, `import` and `apply` have in common."""

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, TypeVar

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from bmq.cli.target import Target
from bmq.cli.terminal import plain, show_line
from bmq.client.messages import ReplyMessage
from bmq.errors import ControlError, ServiceError
from bmq.records import Installation
from bmq.zones.checks import check_definition

Item = TypeVar("Item")
NoWait = Annotated[bool, typer.Option("--no-wait", help="Publish, and do not wait for the reply.")]
Timeout = Annotated[float, typer.Option("--timeout", help="Seconds to wait for the reply.", min=0)]
ManyTimeout = Annotated[float, typer.Option("--timeout", help="Seconds to wait for the next reply.", min=0)]


def installation_of(target: Target) -> Installation | None:
    """Return what the rules for a definition depend on; None if there is no configuration."""
    return None if target.config is None else target.config.installation()


def refuse_invalid(target: Target, query_id: str, definition: bytes) -> None:
    """Refuse a definition that the service would reject: in the topic it would replace the definition in force."""
    try:
        check_definition(query_id, definition, installation_of(target))
    except ControlError as error:
        raise ServiceError(f"{query_id}: {error.code.value}: {error} Nothing was published.") from error


def publish_many(
    target: Target, commands: Mapping[str, bytes | None], timeout: float, *, no_wait: bool
) -> dict[str, ReplyMessage]:
    """Publish commands (None: delete) and show what the service replied to each; return the replies.

    Raises
    ------
    ServiceError
        The service rejected some of them; each is shown before.
    """
    if not commands:
        return {}
    with target.client() as client:
        if no_wait:
            for query_id, offset in client.publish(commands).items():
                say_published(query_id, offset)
            return {}
        with _progress() as progress:
            task = progress.add_task("replies", total=len(commands))
            replies = client.put_many(commands, timeout, lambda _: progress.advance(task))
    rejected = [reply for reply in replies.values() if reply.status == "rejected"]
    for query_id in commands:
        if replies[query_id].status != "rejected":
            say_reply(replies[query_id])
    for reply in rejected:
        show_line(_rejection(reply), err=True)
    if rejected:
        raise ServiceError(f"The service rejected {len(rejected)} of {len(commands)} commands; see above.")
    return replies


def with_progress(what: str, items: Iterable[Item], total: int) -> Iterator[Item]:
    """Yield the items, with a bar on stderr if it is a terminal."""
    with _progress() as progress:
        task = progress.add_task(what, total=total)
        for item in items:
            yield item
            progress.advance(task)


def say_published(query_id: str, offset: int) -> None:
    """Show that a command is published."""
    show_line(f"published: {query_id}, control offset {offset}")


def say_reply(reply: ReplyMessage) -> None:
    """Show a reply.

    Raises
    ------
    ServiceError
        It is a rejection.
    """
    if reply.status == "rejected":
        raise ServiceError(plain(_rejection(reply)))
    version = "" if reply.version is None else f", version {reply.version}"
    show_line(f"{reply.status}: {reply.query_id}{version}")
    if reply.error is not None:
        show_line(f"Its events go to the events topic: {reply.error.message}", err=True)


def parsed(definition: bytes) -> Any:
    """Return JSON as Python reads it; None if it is not JSON."""
    try:
        return json.loads(definition)
    except (ValueError, RecursionError):
        return None


def _rejection(reply: ReplyMessage) -> str:
    reason = "" if reply.error is None else f": {reply.error.code}: {reply.error.message}"
    return f"{reply.query_id} was rejected{reason}"


def _progress() -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    # A file or a pipe gets no bar. It goes to stderr, so that stdout has the replies alone.
    return Progress(*columns, console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty())
