"""`bmq query`: put, remove, list and show standing queries. `import` and `apply` have modules of their own."""

import json
import sys
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console
from rich.table import Table

from bmq.cli.apply import apply, export
from bmq.cli.import_features import import_features
from bmq.cli.publishing import NoWait, Timeout, readable, refuse_invalid, say_published, say_reply
from bmq.cli.target import BootstrapOption, ConfigOption, find_target
from bmq.cli.terminal import plain, show_line, show_lines
from bmq.client.client import REPLY_TIMEOUT_SECONDS, StandingQuery
from bmq.client.messages import Member
from bmq.errors import ServiceError
from bmq.wire.fault_texts import nearest
from bmq.wire.kinds import KINDS

app = typer.Typer(help="Put, import, apply, remove, list, show and export standing queries.", no_args_is_help=True)

QueryId = Annotated[str, typer.Argument(metavar="ID", help="The query id.")]
Json = Annotated[bool, typer.Option("--json", help="Write JSON, one object a line.")]


@app.command("put")
def put(
    query_id: QueryId,
    file: Annotated[
        typer.FileBinaryRead,
        typer.Argument(metavar="FILE|-", help="The definition, a JSON object; - reads stdin."),
    ],
    no_wait: NoWait = False,
    timeout: Timeout = REPLY_TIMEOUT_SECONDS,
    config: ConfigOption = None,
    bootstrap: BootstrapOption = None,
) -> None:
    """Register a query, or replace it. Nothing is published that the service would reject."""
    target = find_target(config, bootstrap)
    definition = file.read()
    refuse_invalid(target, query_id, definition)
    with target.client() as client:
        if no_wait:
            say_published(query_id, client.publish({query_id: definition})[query_id])
        else:
            say_reply(client.put(query_id, definition, timeout))


app.command("import")(import_features)
app.command("apply")(apply)
app.command("export")(export)


@app.command("rm")
def remove(
    query_id: QueryId,
    no_wait: NoWait = False,
    timeout: Timeout = REPLY_TIMEOUT_SECONDS,
    config: ConfigOption = None,
    bootstrap: BootstrapOption = None,
) -> None:
    """Delete a query."""
    with find_target(config, bootstrap).client() as client:
        if no_wait:
            say_published(query_id, client.publish({query_id: None})[query_id])
        else:
            say_reply(client.delete(query_id, timeout))


@app.command("list")
def list_queries(as_json: Json = False, config: ConfigOption = None, bootstrap: BootstrapOption = None) -> None:
    """List the queries that the control topic holds, each with the reply to it."""
    with find_target(config, bootstrap).client() as client:
        queries = sorted(client.queries().values(), key=lambda query: query.query_id)
    if as_json:
        for query in queries:
            show_line(json.dumps(_as_json(query), ensure_ascii=False))
    else:
        _print_table(queries)


@app.command("show")
def show(
    query_id: QueryId,
    as_json: Json = False,
    config: ConfigOption = None,
    bootstrap: BootstrapOption = None,
) -> None:
    """Show a query's definition, the reply to it, and who is inside now.

    Who is inside is read from the membership topic, where one is configured (topics.membership). Only border queries
    have somebody inside.
    """
    target = find_target(config, bootstrap)
    with target.client() as client:
        queries = client.queries()
        members = None if target.topics.membership is None else client.members(query_id)
    query = queries.get(query_id)
    if query is None:
        near = nearest(query_id, queries)
        hint = f" Did you mean {near!r}?" if near else ""
        raise ServiceError(
            f"Topic {target.topics.control!r} holds no query {query_id!r}.{hint} 'bmq query list' shows all."
        )
    if as_json:
        inside = None if members is None else [msgspec.to_builtins(member) for member in members]
        show_line(json.dumps(_as_json(query) | {"inside": inside}, ensure_ascii=False))
        return
    definition = readable(query.definition)
    if isinstance(definition, str):
        show_line(definition)
    else:
        show_lines(json.dumps(definition, indent=2, ensure_ascii=False))
    show_line(_answer(query))
    for line in _inside(_kind(definition), members):
        show_line(line)


def _as_json(query: StandingQuery) -> dict[str, Any]:
    reply = query.reply
    error = None if reply is None or reply.error is None else {"code": reply.error.code, "message": reply.error.message}
    return {
        "query_id": query.query_id,
        "status": query.status,
        "version": None if reply is None else reply.version,
        "control_offset": query.control_offset,
        "error": error,
        "definition": readable(query.definition),
    }


def _answer(query: StandingQuery) -> str:
    reply = query.reply
    if reply is None or query.status == "unanswered":
        return f"unanswered: the service has not yet read control offset {query.control_offset}"
    if reply.status == "rejected" and reply.error is not None:
        return f"rejected: {reply.error.code}: {reply.error.message}"
    answer = f"{query.status}: version {reply.version}, control offset {query.control_offset}, batch {reply.batch}"
    return answer if reply.error is None else f"{answer}; its events go to the events topic: {reply.error.message}"


def _kind(definition: Any) -> str:
    return str(definition.get("kind", "")) if isinstance(definition, dict) else ""


def _inside(kind: str, members: list[Member] | None) -> list[str]:
    reports = KINDS[kind].reports if kind in KINDS else None
    if reports is not None:
        return [f"who is inside: a query of kind {kind} has no members; it reports {reports}."]
    if members is None:
        return [
            'who is inside: not known. Set membership = "bmq.membership" under [topics] in the configuration and '
            "restart the service; the topic then holds whoever enters from that moment on."
        ]
    return [f"inside now: {len(members)}", *(f"  {member.line()}" for member in members)]


def _print_table(queries: list[StandingQuery]) -> None:
    table = Table("ID", "STATUS", "VERSION", "KIND", "FEED", "REGION", "STREAMS", box=None, pad_edge=False)
    for query in queries:
        version = "" if query.reply is None or query.reply.version is None else str(query.reply.version)
        table.add_row(*map(plain, (query.query_id, query.status, version, *_summary(readable(query.definition)))))
    # A file or a pipe has no width, so the lines must not be cut.
    console = Console(markup=False, width=None if sys.stdout.isatty() else 1_000)
    console.print(table)
    console.print(f"{len(queries)} queries")


def _summary(definition: Any) -> tuple[str, str, str, str]:
    if not isinstance(definition, dict):
        return ("", "", "", "")
    streams = definition.get("streams")
    return (
        _kind(definition),
        _feeds(definition),
        _region(definition),
        "all" if not isinstance(streams, list) else str(len(streams)),
    )


def _feeds(definition: dict[str, Any]) -> str:
    sides = [definition.get(side) for side in ("left", "right")]
    names = [side.get("feed") if isinstance(side, dict) else side for side in sides]
    return str(definition.get("feed", "")) if None in names else " ~ ".join(map(str, names))


def _region(definition: dict[str, Any]) -> str:
    """Return the region of a definition: its intervals, or the name of its shape."""
    match definition:
        case {"region": {"box": dict(box)}}:
            return _intervals(box)
        case {"region": dict(region)}:
            return ", ".join(region)
        case {"band": band, "on": {"left": left, "right": right}}:
            return f"{left} - {right} {json.dumps(band)}"
        case {"any": [*conjunctions]}:
            return " or ".join(_intervals(one) for one in conjunctions if isinstance(one, dict))
    return ""


def _intervals(asked: dict[str, Any]) -> str:
    return " ".join(f"{name} {json.dumps(interval)}" for name, interval in asked.items())
