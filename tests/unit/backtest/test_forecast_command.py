"""`bmq forecast`: its numbers against runs of the library, and what it shows and refuses."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

import bmq
from bmq.backtest.noise_counts import QueryNoise
from bmq.backtest.noise_plot import share_left
from bmq.cli import app
from tests.examples import times

CONFIG = """
[feeds.line]
topic = "line"
stream_id = "id"
event_time = "ts"
dimensions = ["x"]

[tenants.zones]
prefix = "zones."
queries = 3
"""
FIRST = 1_700_000_000_000
DAY = 86_400_000
BORDER = {"kind": "border", "feed": "line", "region": {"box": {"x": [0, 10]}}}
QUERIES: dict[str, Any] = {
    "zones.plain": BORDER,
    "zones.above": BORDER | {"region": {"box": {"x": [5, None]}}, "passes": True},
    "zones.match": BORDER | {"kind": "match"},
}
SIZES = ["--stay-for", "2s", "--cooldown", "3s", "--exit-margin", "10%", "--exit-margin", "2"]
CHANGES: list[dict[str, Any]] = [{"stay_for": "2s"}, {"cooldown": "3s"}]
EXITS: list[dict[str, Any]] = [{"exit_region": {"box": {"x": [-1, 11]}}}, {"exit_region": {"box": {"x": [-2, 12]}}}]

Row = tuple[str, int, float]


@pytest.fixture(autouse=True)
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("bmq.toml").write_text(CONFIG)
    return tmp_path


def forecast(*arguments: str, rows: Sequence[Row], queries: dict[str, Any] | None = None) -> Result:
    columns = [list(column) for column in zip(*rows, strict=True)] or [[], [], []]
    pq.write_table(pa.table(dict(zip(("id", "ts", "x"), columns, strict=True))), "in.parquet")
    Path("queries.json").write_text(json.dumps(queries or QUERIES))
    usual = ["forecast", "--config", "bmq.toml", "--queries", "queries.json", "--feed", "line", "in.parquet"]
    result = CliRunner().invoke(app, [*usual, *arguments])
    assert not isinstance(result.exception, AssertionError)
    return result


def events_of(definition: dict[str, Any], rows: Sequence[Row]) -> list[dict[str, Any]]:
    monitor = bmq.Monitor(bmq.Feed("line", ["x"]))
    monitor.put("q", definition)
    ids, event_times, values = zip(*rows, strict=True)
    monitor.advance({"line": {"id": list(ids), "ts": list(event_times), "x": list(values)}})
    found: list[dict[str, Any]] = monitor.events().to_pylist()
    return found


def returns_in(events: Sequence[dict[str, Any]], within_ms: int) -> float | None:
    n_entered = n_returns = 0
    left_at: dict[str, Any] = {}
    for event in events:
        if event["sign"] == "-":
            left_at[event["stream_id"]] = event["event_time"]
        elif event["sign"] == "+":
            n_entered += 1
            before = left_at.get(event["stream_id"])
            n_returns += before is not None and (event["event_time"] - before).total_seconds() * 1000 <= within_ms
    return n_returns / n_entered if n_entered else None


histories = st.lists(
    st.tuples(st.sampled_from("ab"), st.integers(0, 3), st.sampled_from([-3.0, -1.5, 0.0, 5.0, 9.0, 10.5, 12.0, 20.0])),
    min_size=1,
    max_size=25,
)


@settings(max_examples=times(0.3), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=histories)
def test_the_numbers_are_those_of_runs_with_the_option(steps: Sequence[tuple[str, int, float]]) -> None:
    rows, now = [], FIRST
    for stream, seconds, value in steps:
        now += seconds * 1000
        rows.append((stream, now, value))

    result = forecast(*SIZES, "--returns-within", "2s", "--json", rows=rows)

    assert result.exit_code == 0, result.output
    found = {row["query_id"]: row for row in map(json.loads, result.stdout.splitlines())}
    for query_id, definition in QUERIES.items():
        events = events_of(definition, rows)
        row = found[query_id]
        assert row["events"] == len(events)
        assert row["returns"] == returns_in(events, 2000)
        days = (rows[-1][1] - FIRST - steps[0][1] * 1000) / DAY
        n_streams = len({stream for stream, _, _ in rows})
        assert row["events_per_stream_day"] == (pytest.approx(len(events) / n_streams / days) if days else None)
    plain = found["zones.plain"]
    if plain["events"]:
        shares = [share for sizes in plain["left"].values() for share in sizes.values()]
        counts = [len(events_of(BORDER | change, rows)) for change in (*CHANGES, *EXITS)]
        assert shares == [pytest.approx(count / plain["events"]) for count in counts]


ROWS: list[Row] = [
    *(("a", FIRST + 1000 * second, x) for second, x in enumerate([5.0, 10.5, 5.0, 20.0, 5.0])),
    ("b", FIRST + DAY // 2, 50.0),
]


def test_the_table_has_a_row_for_each_query_the_noisiest_first() -> None:
    result = forecast(*SIZES, "--returns-within", "1s", rows=ROWS)

    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0].startswith("6 readings in ")
    assert lines[2] == "0.50 days, 2 streams"
    assert lines[3].split() == ["A", "STREAM", "RETURNS", "STAY_FOR", "COOLDOWN", "EXIT_REGION", "EXIT_REGION"]
    assert lines[4].split() == ["QUERY", "EVENTS", "AND", "DAY", "1s", "2s", "3s", "10%", "2"]
    # + 0 s, - 1 s, + 2 s, - 3 s, + 4 s: one visit lasts 2 s, two returns; 10.5 is inside of a grown region.
    rows = {line.split()[0]: line.split()[1:] for line in lines[5:]}
    assert list(rows) == ["zones.plain", "zones.match", "zones.above"]
    assert rows["zones.plain"] == ["5", "5", "67%", "20%", "60%", "60%", "60%"]
    assert rows["zones.above"] == ["2", "2", "0%", *"----"]  # with `passes` there are no variants
    assert rows["zones.match"] == ["3", "3", *"-----"]


def test_a_query_that_names_streams_counts_these_alone() -> None:
    result = forecast("--json", rows=ROWS, queries={"zones.one": BORDER | {"streams": ["a", "c"]}})

    (row,) = map(json.loads, result.stdout.splitlines())
    assert (row["events"], row["events_per_stream_day"]) == (5, 5.0)  # two streams, half a day


@pytest.mark.parametrize(("suffix", "begin"), [(".png", b"\x89PNG"), (".svg", b"<?xml"), (".pdf", b"%PDF")])
def test_a_plot_is_written(suffix: str, begin: bytes) -> None:
    queries = {f"zones.a_{{^$\\{number}": BORDER for number in range(3)}  # no formula of matplotlib

    result = forecast("--plot", f"plot{suffix}", rows=ROWS, queries=queries)

    assert result.exit_code == 0, result.output
    assert Path(f"plot{suffix}").read_bytes().startswith(begin)


def test_the_share_of_an_option_is_that_of_the_queries_that_can_have_it() -> None:
    rows = [QueryNoise("a", 30, None, None, (0.5, None)), QueryNoise("b", 10, None, None, (None, None))]
    assert share_left([*rows, QueryNoise("c", 10, None, None, (0.1, None))], 0) == pytest.approx(16 / 40)
    assert share_left(rows, 1) is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--stay-for", "90"], "'90': a duration is a whole number"),
        (["--cooldown", "0s"], "must be above zero"),
        (["--exit-margin", "wide"], "'wide': a margin is a number above 0"),
        (["--returns-within", "soon"], "'soon': a duration"),
        (["--plot", "plot.txt"], "ends with none of .png, .svg, .pdf"),
        (["--plot", "nowhere/plot.png"], "there is no folder 'nowhere'"),
    ],
)
def test_what_it_cannot_do_is_refused(arguments: list[str], message: str) -> None:
    result = forecast(*arguments, rows=ROWS)

    assert result.exit_code in (1, 2)
    assert message in " ".join(result.stderr.replace("│", " ").split())


def test_without_matplotlib_the_plot_is_refused_before_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = forecast("--plot", "plot.png", rows=ROWS)

    assert (result.exit_code, result.stdout) == (1, "")
    assert "pip install 'bmq[plot]'" in result.stderr


def test_the_limits_of_a_tenant_are_those_of_the_queries_and_not_of_their_variants() -> None:
    queries = {f"zones.{number}": BORDER for number in range(4)}

    assert forecast(rows=ROWS, queries=dict(list(queries.items())[:3])).exit_code == 0
    refused = forecast(rows=ROWS, queries=queries)
    assert "would reject 1 of 4 definitions" in refused.stderr
    assert "zones.3: over_limit" in refused.stderr


def test_the_passes_of_a_query_are_counted_as_in_a_backtest() -> None:
    tenant = '[tenants.others]\nprefix = ""\n[limits]\npasses = 1\n'
    Path("bmq.toml").write_text(CONFIG + tenant)
    passes = BORDER | {"passes": True}
    queries = {"zones.0": passes, "zone": passes}  # of two tenants: one pass each
    rows = [("a", FIRST, -5.0), ("a", FIRST + 1000, 20.0)]

    found = forecast("--json", rows=rows, queries=queries)

    assert found.exit_code == 0, found.output
    assert [json.loads(line)["events"] for line in found.stdout.splitlines()] == [2, 2]
    usual = ["backtest", "--config", "bmq.toml", "--queries", "queries.json", "--feed", "line", "in.parquet"]
    assert "4 events of 2 queries" in CliRunner().invoke(app, usual).stdout


def test_rows_that_are_not_readings_are_counted_on_stderr_beside_json() -> None:
    result = forecast("--json", "--bad-readings", "drop", rows=[*ROWS, ("", FIRST + DAY, 1.0)])

    assert "1 rows of files are not readings" in result.stderr
    assert [json.loads(line)["query_id"] for line in result.stdout.splitlines()][:1] == ["zones.plain"]


def test_a_narrow_terminal_cuts_no_column(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    forecast(rows=ROWS)  # writes the files
    usual = ["forecast", "--config", "bmq.toml", "--queries", "queries.json", "--feed", "line", "in.parquet"]
    monkeypatch.setenv("TERM", "dumb")  # 80 columns, and nothing is bold
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)

    app(usual, standalone_mode=False)

    lines = capsys.readouterr().out.splitlines()
    assert " ".join(lines[4].split()) == "QUERY EVENTS AND DAY 1m 10s 1m 5m 1m 10m 1h 2% 5% 10%"
