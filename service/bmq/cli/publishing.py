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
from bmq.errors import ControlCode, ControlError, ServiceError
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


def publish_many(target: Target, commands: Mapping[str, bytes | None], timeout: float, *, no_wait: bool) -> None:
    """Publish commands (None: delete) and show what the service replied to each.

    Raises
    ------
    ServiceError
        The service rejected some of them; each is shown before.
    """
    if not commands:
        return
    with target.client() as client:
        if no_wait:
            for query_id, offset in client.publish(commands).items():
                say_published(query_id, offset)
            return
        replies: dict[str, ReplyMessage] = {}

        def note(reply: ReplyMessage) -> None:
            replies[reply.query_id] = reply
            progress.advance(task)

        try:
            with _progress() as progress:
                task = progress.add_task("replies", total=len(commands))
                client.put_many(commands, timeout, note)
        finally:  # also if some have no reply
            n_rejected = _show_replies(commands, replies)
    if n_rejected:
        raise ServiceError(f"The service rejected {n_rejected} of {len(commands)} commands; see above.")


def _show_replies(commands: Mapping[str, bytes | None], replies: Mapping[str, ReplyMessage]) -> int:
    """Show the replies, the rejections last; return how many of these there are."""
    rejected = []
    for query_id, reply in ((query_id, replies[query_id]) for query_id in commands if query_id in replies):
        is_gone = reply.error is not None and reply.error.code == ControlCode.UNKNOWN_QUERY
        if commands[query_id] is None and is_gone:  # its time was over, or it never came into force
            show_line(f"gone already: {query_id}")
        elif reply.status == "rejected":
            rejected.append(reply)
        else:
            say_reply(reply)
    for reply in rejected:
        show_line(_rejection(reply), err=True)
    return len(rejected)


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


def readable(definition: bytes) -> Any:
    """Return a definition as parsed JSON, or as text if it is not JSON: the topic may contain anything."""
    read = parsed(definition)
    return definition.decode(errors="replace") if read is None else read


def _rejection(reply: ReplyMessage) -> str:
    reason = "" if reply.error is None else f": {reply.error.code}: {reply.error.message}"
    return f"{reply.query_id} was rejected{reason}"


def _progress() -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    # A file or a pipe gets no bar. It goes to stderr, so that stdout has the replies alone.
    return Progress(*columns, console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty())
