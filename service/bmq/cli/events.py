"""`bmq events`: read events."""

from itertools import islice
from typing import Annotated

import typer

from bmq.cli.target import BootstrapOption, ConfigOption, find_target
from bmq.cli.terminal import show_line


def events(
    query: Annotated[str | None, typer.Option("--query", metavar="ID", help="Only events of this query.")] = None,
    stream: Annotated[
        str | None, typer.Option("--stream", metavar="ID", help="Only events of this stream; of joins, on either side.")
    ] = None,
    from_beginning: Annotated[
        bool, typer.Option("--from-beginning", help="First all events that the topic still holds.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Write the events as they are, one a line.")] = False,
    limit: Annotated[int | None, typer.Option("--limit", help="End after so many events.", min=1)] = None,
    timeout: Annotated[float | None, typer.Option("--timeout", help="End after so many seconds.", min=0)] = None,
    topic: Annotated[
        str | None, typer.Option("--topic", help="Another topic, for queries with an output_topic.")
    ] = None,
    group: Annotated[
        str | None,
        typer.Option("--group", help="A consumer group: its members share the events, and a later one goes on."),
    ] = None,
    config: ConfigOption = None,
    bootstrap: BootstrapOption = None,
) -> None:
    """Read events, from now on and until Ctrl-C."""
    if group is not None and limit is not None:
        raise typer.BadParameter(
            "--limit is not for a --group: the last event would come again. Leave one of them out."
        )
    with find_target(config, bootstrap).client() as client:
        found = client.event_records(
            query, stream, from_beginning=from_beginning, timeout=timeout, topic=topic, group=group
        )
        try:
            for event, value in islice(found, limit):
                for line in [value.decode()] if as_json else event.lines():
                    show_line(line)
        except KeyboardInterrupt:
            return
