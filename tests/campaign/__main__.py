"""Random faults under load, and what a reader of committed records finds against the oracle.

    python -m tests.campaign --faults 100 --seed 1
    python -m tests.campaign --faults 10 --only kill_a_part --only stop_a_part

The queries are put first. Then readings and faulty records are sent all the time. Each round waits for a finished
batch, then some more, and makes one fault: a kill or a stop of a part of the service or of the broker, a full disk, a
damaged file of the checkpoint, a deleted topic, a new partition, wild records (`faults`). Whatever ends is started
again. At the end each event of the definition must be there once, in the order of its stream, each command and each
faulty record must be answered once, and each stop of the service must have said why.
"""

import argparse
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.campaign.comparison import what_differs
from tests.campaign.faults import FAULTS, WEIGHTS
from tests.campaign.stage import Stage

LONGEST_WAIT_SECONDS = 3.0  # between a finished batch and the fault


def run(folder: Path, n_faults: int, seed: int, minutes: float = float("inf"), only: Sequence[str] = ()) -> list[str]:
    """Run a campaign; return a sentence for each difference, and for each stop without a reason.

    Parameters
    ----------
    only : names of faults; empty: all.
    """
    deadline = time.monotonic() + 60 * minutes
    chosen = list(only) or list(FAULTS)
    stage = Stage(folder, seed)
    try:
        stage.load.put_queries()
        stage.settle()
        stage.load.start()
        try:
            for number in range(n_faults):
                if time.monotonic() > deadline:
                    break
                stage.wait_for_batch()
                time.sleep(stage.rng.uniform(0, LONGEST_WAIT_SECONDS))
                (name,) = stage.rng.choices(chosen, [WEIGHTS.get(fault, 1) for fault in chosen])
                what = FAULTS[name](stage)
                print(f"fault {number + 1}: {what}; {sum(stage.load.n_sent.values())} records", flush=True)
        finally:
            stage.load.stop()
        stage.settle()
        different = what_differs(stage.broker.bootstrap_servers, stage.load, stage.kept)
    finally:
        stage.close()
    for line, n in stage.stops.items():
        print(f"stopped {n} times: {line}")
    print(f"{len(stage.load.oracle.events)} events, {len(different)} differences", flush=True)
    return different + [f"no reason that an operator understands: {line}" for line in stage.wrong_lines]


def main() -> int:
    """Run a campaign; return 1 if anything differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--faults", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--only", choices=list(FAULTS), action="append", default=[])
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        different = run(Path(folder), arguments.faults, arguments.seed, arguments.minutes, arguments.only)
    print(*different, sep="\n")
    return 1 if different else 0


if __name__ == "__main__":
    raise SystemExit(main())
