"""`bmq check-ledger`: checks that the events topics satisfy the rules of the ledger."""

import json
from dataclasses import asdict
from typing import Annotated

import typer

from bmq.cli.target import BootstrapOption, ConfigOption, find_target
from bmq.cli.terminal import show_line
from bmq.client.ledger import Report


def check_ledger(
    from_beginning: Annotated[
        bool,
        typer.Option(
            "--from-beginning",
            help="The topics hold every event since the service's first start: each stream begins with + then. "
            "Without this, a first - may be the rest of what the topic's retention removed.",
        ),
    ] = False,
    topic: Annotated[
        list[str] | None,
        typer.Option(
            "--topic",
            help="A topic of events; may be given more than once.  "
            "[default: topics.events, and each output_topic of a query in the control topic]",
            show_default=False,
        ),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Fail on repeats, even if the configured delivery allows them.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Write the report as one JSON object.")] = False,
    config: ConfigOption = None,
    bootstrap: BootstrapOption = None,
) -> None:
    """Read all events that are there now, and report what breaks the ledger; exit code 1 if anything does.

    For each query and stream the signs must alternate, as for each band join and pair of streams, and no event may
    come twice. One that comes again with the same id and content is a repeat. With job.delivery = "at_least_once" a
    crash may leave repeats, and they alone are no failure.
    """
    target = find_target(config, bootstrap)
    with target.client() as client:
        report = client.check_ledger(topic or (), from_beginning=from_beginning)
    if as_json:
        show_line(json.dumps(asdict(report) | {"is_whole": report.is_whole}, ensure_ascii=False))
    else:
        for line in _lines(report):
            show_line(line)
    may_repeat = target.config is not None and target.config.job.delivery == "at_least_once" and not strict
    if report.n_faults or (report.n_repeats and not may_repeat):
        raise typer.Exit(1)


def _lines(report: Report) -> list[str]:
    lines = [f"broken: {fault}" for fault in report.faults]
    lines += [f"repeated: {repeat}" for repeat in report.repeats]
    hidden = report.n_faults + report.n_repeats - len(lines)
    if hidden:
        lines.append(f"and {hidden:,} more")
    lines.append(
        f"{report.n_events:,} events of {report.n_pairs:,} (query, stream) pairs: {report.n_faults:,} faults, "
        f"{report.n_repeats:,} repeats"
    )
    if report.n_back:
        lines.append(
            f"warning: {report.n_back:,} events are older than the one before them. That is right for readings that "
            "arrive behind an expiry only."
        )
    if report.n_foreign:
        lines.append(f"warning: {report.n_foreign:,} records are no events of this service")
    return lines
