"""`bmq query`: put, remove, list and show standing queries."""

import json
import sys
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console
from rich.table import Table

from bmq.cli.features import read_features
from bmq.cli.target import BootstrapOption, ConfigOption, Target, find_target
from bmq.cli.terminal import plain, show_line, show_lines
from bmq.client.client import REPLY_TIMEOUT_SECONDS, StandingQuery
from bmq.client.messages import Member, ReplyMessage
from bmq.errors import ControlCode, ControlError, ServiceError
from bmq.wire.control import validate_definition
from bmq.wire.definitions import read_definition
from bmq.wire.fault_texts import nearest
from bmq.wire.kinds import KINDS

app = typer.Typer(help="Put, remove, list and show standing queries.", no_args_is_help=True)

QueryId = Annotated[str, typer.Argument(metavar="ID", help="The query id.")]
NoWait = Annotated[bool, typer.Option("--no-wait", help="Publish, and do not wait for the reply.")]
Timeout = Annotated[float, typer.Option("--timeout", help="Seconds to wait for the reply.", min=0)]
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
    _validate(target, query_id, definition)
    with target.client() as client:
        if no_wait:
            _say_published(query_id, client.publish({query_id: definition})[query_id])
        else:
            _say_reply(client.put(query_id, definition, timeout))


@app.command("import")
def import_features(
    file: Annotated[
        typer.FileBinaryRead,
        typer.Argument(metavar="FILE|-", help="A FeatureCollection of GeoJSON; - reads stdin."),
    ],
    feed: Annotated[str, typer.Option("--feed", metavar="FEED", help="The feed that the queries watch.")],
    id_property: Annotated[
        str | None,
        typer.Option("--id-property", metavar="NAME", help="The property that is the query id.  [default: `id`]"),
    ] = None,
    no_wait: NoWait = False,
    timeout: Timeout = REPLY_TIMEOUT_SECONDS,
    config: ConfigOption = None,
    bootstrap: BootstrapOption = None,
) -> None:
    """Register a border query for each feature of a GeoJSON file, or replace it.

    The query id is the feature's own id, or one of its properties. Nothing is published if the service would reject
    one of the queries.
    """
    target = find_target(config, bootstrap)
    features = read_features(file.read(), feed, id_property)
    definitions = {query_id: json.dumps(definition).encode() for query_id, definition in features.items()}
    for query_id, definition in definitions.items():
        _validate(target, query_id, definition)
    with target.client() as client:
        if no_wait:
            for query_id, offset in client.publish(definitions).items():
                _say_published(query_id, offset)
            return
        replies = client.put_many(definitions, timeout)
    # A rejection ends the command, so it is said after all that was accepted.
    for reply in sorted(replies.values(), key=lambda reply: reply.status == "rejected"):
        _say_reply(reply)


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
            _say_published(query_id, client.publish({query_id: None})[query_id])
        else:
            _say_reply(client.delete(query_id, timeout))


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
    definition = _definition(query)
    if isinstance(definition, str):
        show_line(definition)
    else:
        show_lines(json.dumps(definition, indent=2, ensure_ascii=False))
    show_line(_answer(query))
    for line in _inside(_kind(definition), members):
        show_line(line)


def _validate(target: Target, query_id: str, definition: bytes) -> None:
    """Refuse a definition that the service would refuse: in the topic it would replace the definition in force."""
    try:
        if target.config is not None:
            validate_definition(query_id, definition, target.config.installation())
            return
        # Without a configuration the feeds are not known, but the rules for every definition still apply.
        read = _parsed(definition)
        if not isinstance(read, dict):
            raise ControlError(ControlCode.NOT_JSON, "The definition is no JSON object. Write one.")
        read_definition(read)
    except ControlError as error:
        raise ServiceError(f"{query_id}: {error.code.value}: {error} Nothing was published.") from error


def _say_published(query_id: str, offset: int) -> None:
    show_line(f"published: {query_id}, control offset {offset}")


def _say_reply(reply: ReplyMessage) -> None:
    if reply.status == "rejected" and reply.error is not None:
        raise ServiceError(plain(f"{reply.query_id} was rejected: {reply.error.code}: {reply.error.message}"))
    version = "" if reply.version is None else f", version {reply.version}"
    show_line(f"{reply.status}: {reply.query_id}{version}")
    if reply.error is not None:
        show_line(f"Its events go to the events topic: {reply.error.message}", err=True)


def _parsed(definition: bytes) -> Any:
    try:
        return json.loads(definition)
    except (ValueError, RecursionError):
        return None


def _definition(query: StandingQuery) -> Any:
    """Return the definition as parsed JSON, or as text if it is not JSON: the topic may contain anything."""
    read = _parsed(query.definition)
    return query.definition.decode(errors="replace") if read is None else read


def _as_json(query: StandingQuery) -> dict[str, Any]:
    reply = query.reply
    error = None if reply is None or reply.error is None else {"code": reply.error.code, "message": reply.error.message}
    return {
        "query_id": query.query_id,
        "status": query.status,
        "version": None if reply is None else reply.version,
        "control_offset": query.control_offset,
        "error": error,
        "definition": _definition(query),
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
        table.add_row(*map(plain, (query.query_id, query.status, version, *_summary(_definition(query)))))
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
