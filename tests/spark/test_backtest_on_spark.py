"""`bmq backtest --spark`: the events of a run without Spark, and nothing is left of a run that fails."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

from bmq.cli import app

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

FIRST, N_STREAMS, N_STEPS = 1_700_000_000_000, 40, 60
REGION = {"box": {"x": [20, 60]}}
QUERIES: dict[str, Any] = {
    "plain": {"kind": "border", "feed": "line", "region": REGION},
    "stays": {"kind": "border", "feed": "line", "region": REGION, "stay_for": "3s"},
    "short": {"kind": "border", "feed": "line", "region": {"box": {"x": [0, None]}}, "ttl": "20s"},
}


@pytest.fixture(autouse=True)
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bmq.toml").write_text(
        '[job]\nshards = 3\n[feeds.line]\ntopic = "line"\nstream_id = "id"\nevent_time = "ts"\ndimensions = ["x"]\n'
    )
    Path("queries.json").write_text(json.dumps(QUERIES))
    Path("history").mkdir()
    generator = np.random.default_rng(5)
    places = generator.uniform(0, 100, N_STREAMS)
    tables = []
    for step in range(N_STEPS):
        places = places + generator.normal(0, 5, N_STREAMS)
        ids = [f"stream-{number}" for number in range(N_STREAMS)]
        tables.append(pa.table({"id": ids, "ts": [FIRST + 1000 * step] * N_STREAMS, "x": places}))
    for number in range(2):
        half = pa.concat_tables(tables[number * N_STEPS // 2 : (number + 1) * N_STEPS // 2])
        pq.write_table(half, f"history/part-{number}.parquet", row_group_size=500)
    pq.write_table(tables[0].slice(0, 0), "history/part-9.parquet")


def backtest(*arguments: str) -> Result:
    usual = ["backtest", "--config", "bmq.toml", "--queries", "queries.json", "--feed", "line"]
    return CliRunner().invoke(app, [*usual, *arguments])


def events_in(path: str) -> list[dict[str, Any]]:
    rows = pq.read_table(path).to_pylist()
    return sorted(rows, key=lambda row: str(row["event_id"]))


def break_a_row() -> None:
    """Make a row of the second row group of the second file bad."""
    table = pq.read_table("history/part-1.parquet").to_pydict()
    table["x"][777] = None
    pq.write_table(pa.table(table), "history/part-1.parquet", row_group_size=500)


def test_spark_gives_the_same_events_in_a_folder() -> None:
    break_a_row()
    alone = backtest("history", "--bad-readings", "drop", "--out", "events.parquet")

    result = backtest("history", "--bad-readings", "drop", "--out", "events", "--spark")

    assert (alone.exit_code, result.exit_code) == (0, 0), result.output
    assert events_in("events") == events_in("events.parquet")
    assert sorted(file.name for file in Path("events").iterdir()) == [f"part-{n:05}.parquet" for n in range(3)]
    counted, expected = (
        [line for line in shown.stdout.splitlines() if "readings/s" not in line] for shown in (result, alone)
    )
    assert [line.split(", in ")[0] for line in counted] == [line.split(", in ")[0] for line in expected]
    assert "1 queries ended by their ttl or expires_at" in counted
    assert "1 rows of files are not readings" in counted

    again = backtest("history", "--out", "events", "--spark")
    assert (again.exit_code, "a folder that has files" in again.stderr) == (1, True)


def test_a_bad_row_ends_the_run_with_its_place_and_leaves_no_events() -> None:
    break_a_row()

    result = backtest("history", "--out", "events", "--spark")

    assert result.exit_code == 1, result.output
    assert "part-1.parquet': Feed 'line', row 777: 'x' is None" in result.stderr
    assert not list(Path("events").iterdir())


@pytest.mark.parametrize(
    "arguments", [["--overwrite"], ["--put-at", str(FIRST)], ["--out-topic", "events"], ["--topic", "line"]]
)
def test_options_that_do_not_go_with_spark_are_refused(arguments: list[str]) -> None:
    result = backtest("--spark", *arguments)

    assert result.exit_code == 2
    assert "does not go with --spark" in " ".join(result.stderr.replace("│", " ").split())
