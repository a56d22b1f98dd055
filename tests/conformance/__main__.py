"""`python -m tests.conformance FILE [--pure]`: one line a scenario, and how many passed and failed.

Exit codes: 0 all passed, 1 some failed or the service did, 2 wrong usage.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from bmq.conformance.play import Outcome, play
from bmq.conformance.scenario import Scenario, load
from bmq.errors import ServiceError
from tests.brokers import running_broker
from tests.conformance.kafka_backend import running_service
from tests.conformance.pure_backend import PureBackend
from tests.conformance.service import ServiceFailed


def main() -> int:
    """Play the file named on the command line; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description="Plays scenarios.")
    parser.add_argument("path", type=Path, metavar="FILE", help="scenarios, one JSON object a line")
    parser.add_argument("--pure", action="store_true", help="against the monitor alone, without Kafka and Spark")
    options = parser.parse_args()
    try:
        scenarios = load(options.path)
    except (OSError, UnicodeDecodeError) as error:
        parser.error(f"cannot read {options.path}: {error}")
    if not scenarios:
        parser.error(f"{options.path} holds no scenario")
    start = time.monotonic()
    ledger_faults: list[str] = []
    try:
        if options.pure:
            outcomes = play(scenarios, PureBackend(scenarios))
        else:
            outcomes, ledger_faults = _play_through_kafka(scenarios)
    except (ServiceFailed, ServiceError) as error:
        print(f"the run ended early: {error}", file=sys.stderr)
        return 1
    print(report(outcomes))
    for fault in ledger_faults:
        print(f"the ledger is broken: {fault}")
    print(f"in {time.monotonic() - start:.0f} s", file=sys.stderr)
    # Scenarios decide, and the test of the project's own files asks for a whole ledger: a scenario of `max_events` may
    # end with a + whose - was kept back.
    return 0 if all(outcome.passed for outcome in outcomes) else 1


def report(outcomes: Sequence[Outcome]) -> str:
    """Return one line a scenario, with what differed, and the sums."""
    lines = []
    for outcome in outcomes:
        line = f"PASS {outcome.scenario.name}" if outcome.passed else f"FAIL {outcome.scenario.name}: "
        lines.append(line + "; ".join(outcome.differences))
    n_repeated = sum(outcome.n_repeated for outcome in outcomes)
    if n_repeated:
        lines.append(f"{n_repeated} events came again with the same event_id and were dropped")
    n_passed = sum(outcome.passed for outcome in outcomes)
    lines.append(f"{n_passed} passed, {len(outcomes) - n_passed} failed")
    return "\n".join(lines)


def _play_through_kafka(scenarios: Sequence[Scenario]) -> tuple[list[Outcome], list[str]]:
    """Return the outcomes, and what breaks the ledger in all events together."""
    with (
        tempfile.TemporaryDirectory(prefix="bmq-conformance-") as folder,
        running_broker(Path(folder, "kafka")) as bootstrap_servers,
        running_service(scenarios, Path(folder), bootstrap_servers) as backend,
    ):
        return play(scenarios, backend), backend.ledger_faults()


if __name__ == "__main__":
    sys.exit(main())
