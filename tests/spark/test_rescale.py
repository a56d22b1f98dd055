"""A checkpoint that a real service wrote, divided into other shards, and upgraded: the ledger goes on.

The old service stops after half of the rounds. The other half is read by a service on the new checkpoint, which is
killed once: it knows all streams, queries and windows of the first half from the new checkpoint only.
"""

import json
import os
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.conformance.service import Service
from tests.ledger_check import must_be_whole
from tests.spark import joins_by_hand
from tests.spark.test_restarts import N_STREAMS, QUERIES, Played, Run, events_of, make_config

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1_200)]

N_ROUNDS = 6  # with each service
N_SHARDS = 3  # of the new checkpoint; the old one has two, and the one between has one


@dataclass(frozen=True)
class Rescaled:
    """What came of all rounds; of the old checkpoint a report, an export, where its streams were, and its files before
    and after.
    """

    played: Played
    report: str
    exported: Path
    positions: dict[str, float]
    before: dict[Path, bytes]
    after: dict[Path, bytes]


@pytest.fixture(scope="module")
def rescaled(bootstrap_servers: str, tmp_path_factory: pytest.TempPathFactory) -> Rescaled:
    old, new = tmp_path_factory.mktemp("rescale-old"), tmp_path_factory.mktemp("rescale-new")
    name, config = make_config(old, bootstrap_servers)
    run = Run(name, bootstrap_servers, Service(config))
    try:
        run.put_queries()
        play(run, range(N_ROUNDS))
        run.service.stop()
        positions = dict(run.positions)
        before = files_of(old / "checkpoint")
        report = bmq("show", str(old / "checkpoint"))
        bmq("export", str(old / "checkpoint"), str(new / "exported"))
        bmq("rescale", "--shards", "1", str(old / "checkpoint"), str(new / "between"))
        after = files_of(old / "checkpoint")
        new_config = config_of(new, config)
        said = bmq("upgrade", "--config", str(new_config), str(new / "between"), str(new / "checkpoint"))
        assert "in 3 shards, with 1 more attribute of feed line" in said, said
        run.service = Service(new_config)
        play(run, range(N_ROUNDS, 2 * N_ROUNDS - 1))
        run.service.restart("kill")
        play(run, range(2 * N_ROUNDS - 1, 2 * N_ROUNDS))
    finally:
        run.service.kill()
    must_be_whole(bootstrap_servers, f"{name}-events")
    played = Played(run.borders, run.joins, events_of(bootstrap_servers, f"{name}-events"))
    return Rescaled(played, report, new / "exported", positions, before, after)


def play(run: Run, rounds: range) -> None:
    for number in rounds:
        run.move_all(number)
        run.join_round(number)
        run.settle()


def test_a_rescale_loses_no_event_and_repeats_none(rescaled: Rescaled) -> None:
    found: dict[str, list[tuple[str, str, int, str]]] = defaultdict(list)
    for event in rescaled.played.events:
        if event["kind"] == "border":
            found[event["stream_id"]].append((event["sign"], event["query_id"], event["event_time"], event["reason"]))
    expected: dict[str, list[tuple[str, str, int, str]]] = defaultdict(list)
    for said in rescaled.played.borders.events:
        expected[said.stream].append((said.sign, said.query_id, said.event_time, said.reason))
    assert found == expected


def test_a_rescale_loses_no_pair_and_no_reading_of_a_window(rescaled: Rescaled) -> None:
    emitted, definition = joins_by_hand.Definition(), rescaled.played.joins
    emitted.tell(rescaled.played.events)

    assert emitted.pairs == definition.pairs
    assert emitted.found == definition.found
    assert emitted.selected == definition.selected


def test_a_rescale_leaves_the_old_checkpoint_as_it_was(rescaled: Rescaled) -> None:
    assert rescaled.before
    assert rescaled.after == rescaled.before


def test_the_report_shows_what_is_in_the_checkpoint(rescaled: Rescaled) -> None:
    lines = rescaled.report.splitlines()

    assert "shards: 2" in lines
    assert any(line.startswith("queries: ") and f"border {len(QUERIES)}" in line for line in lines)
    assert any(line.startswith("streams: ") and f"line {N_STREAMS}" in line for line in lines)
    assert any(line.startswith("next offsets of ") and f"-line: 0: {N_ROUNDS * N_STREAMS}" in line for line in lines)


def test_the_export_has_the_last_reading_of_each_stream_and_all_queries(rescaled: Rescaled) -> None:
    streams = pq.read_table(rescaled.exported / "streams-line.parquet").to_pylist()
    queries = [json.loads(line) for line in (rescaled.exported / "queries.jsonl").read_text().splitlines()]

    assert {row["stream_id"]: row["x"] for row in streams} == rescaled.positions
    assert {row["event_time"].timestamp() for row in streams} == {(N_ROUNDS - 1) / 1000}
    assert {row["group"] for row in streams} == {None}
    assert {query["query_id"] for query in queries} == {*QUERIES, *joins_by_hand.DEFINITIONS}


def bmq(*arguments: str) -> str:
    """Run `bmq checkpoint`; return what it wrote."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [sys.executable, "-m", "bmq.cli", "checkpoint", *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-5_000:]
    return done.stdout


def files_of(folder: Path) -> dict[Path, bytes]:
    return {file.relative_to(folder): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def config_of(new: Path, config: Path) -> Path:
    """Write the configuration of the new checkpoint beside it: other shards, and one more attribute of each feed."""
    text = config.read_text(encoding="utf-8").replace("shards = 2", f"shards = {N_SHARDS}")
    text = text.replace('["group"]', '["group", "weight"]')
    path = new / config.name
    path.write_text(text.replace(str(config.with_name("checkpoint")), str(new / "checkpoint")), encoding="utf-8")
    return path
