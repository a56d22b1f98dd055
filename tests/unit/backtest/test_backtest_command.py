"""`bmq backtest` from files to files: the events, the summary, and what it refuses."""

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

import bmq
from bmq.backtest.reading_files import ReadingFiles
from bmq.cli import app
from bmq.records import Feed

CONFIG = """
[feeds.line]
topic = "line"
stream_id = "id"
event_time = "ts"
dimensions = ["x"]
attributes = ["group"]

[feeds.keyed]
topic = "keyed"
stream_id = "@key"
dimensions = ["x"]
"""
FIRST = 1_700_000_000_000
LINE = Feed("line", "line", "id", ("x",), "ts", attributes=("group",))
QUERY = {"kind": "border", "feed": "line", "region": {"box": {"x": [0, 10]}}}
COLUMNS: dict[str, list[Any]] = {
    "id": ["a", "b", "a", "a", "b"],
    "ts": [FIRST, FIRST + 1000, FIRST + 2000, FIRST + 3000, FIRST + 4000],
    "x": [5.0, 20.0, 11.0, 6.0, 3.0],
    "group": ["g", "h", "g", "g", "h"],
}


@pytest.fixture(autouse=True)
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("bmq.toml").write_text(CONFIG)
    write_queries(q=QUERY)
    pq.write_table(pa.table(COLUMNS), "in.parquet")
    return tmp_path


def write_queries(**definitions: Any) -> None:
    Path("queries.json").write_text(json.dumps(definitions))


def backtest(*arguments: str, feed: str = "line") -> Result:
    usual = ("backtest", "--config", "bmq.toml", "--queries", "queries.json", "--feed", feed)
    return CliRunner().invoke(app, [*usual, *arguments])


def events_in(path: str) -> list[tuple[str, str, int]]:
    table = pq.read_table(path) if path.endswith(".parquet") else pyarrow.csv.read_csv(path)
    times = table["event_time"].cast(pa.timestamp("ms", "UTC")).cast(pa.int64()).to_pylist()
    return list(zip(table["sign"].to_pylist(), table["stream_id"].to_pylist(), times, strict=True))


ALL_EVENTS = [("+", "a", FIRST), ("-", "a", FIRST + 2000), ("+", "a", FIRST + 3000), ("+", "b", FIRST + 4000)]


@pytest.mark.parametrize("out", ["out.parquet", "out.csv"])
def test_the_events_are_in_the_file_and_their_number_in_the_summary(out: str) -> None:
    result = backtest("in.parquet", "--out", out)

    assert result.exit_code == 0, result.output
    assert sorted(events_in(out)) == sorted(ALL_EVENTS)
    assert result.stdout.startswith("5 readings in ")
    assert "2 streams are known at the end" in result.stdout
    assert result.stdout.endswith(f"4 events of 1 queries, in {out}\n")
    assert not list(Path().glob("*.part"))


def test_the_table_of_events_is_that_of_the_library() -> None:
    monitor = bmq.Monitor(bmq.Feed("line", ["x"], attributes=["group"]))
    monitor.put("q", QUERY)
    monitor.advance({"line": COLUMNS})

    assert backtest("in.parquet", "--out", "out.parquet").exit_code == 0
    assert pq.read_table("out.parquet").equals(monitor.events())


@pytest.mark.parametrize("form", ["number", "zone", "none", "space", "nanoseconds"])
def test_csv_has_times_in_any_usual_form(form: str) -> None:
    def written(time: int) -> str:
        text = f"2023-11-14T22:13:{20 + (time - FIRST) // 1000}.000"
        return {
            "number": str(time),
            "zone": f"{text}Z",
            "none": text,
            "nanoseconds": f"{text}123456",
            "space": text.replace("T", " "),
        }[form]

    rows = zip(COLUMNS["ts"], COLUMNS["x"], COLUMNS["id"], COLUMNS["group"], strict=True)
    lines = [f"{x},{id_},more,{written(time)},{group}" for time, x, id_, group in rows]
    Path("in.csv").write_text("\n".join(["x,id,other,ts,group", *lines]))
    with gzip.open("zipped.csv.gz", "wt") as file:
        file.write(Path("in.csv").read_text())

    source = ReadingFiles([Path("in.csv"), Path("zipped.csv.gz")], LINE)
    assert [piece.done for piece in source.pieces()] == [Path("in.csv").stat().st_size, source.total]

    for name in ("in.csv", "zipped.csv.gz"):
        result = backtest(name, "--out", "out.csv", "--overwrite")
        assert result.exit_code == 0, result.output
        assert sorted(events_in("out.csv")) == sorted(ALL_EVENTS)


def test_a_bad_cell_of_csv_is_refused_with_its_row_or_counted() -> None:
    Path("in.csv").write_text(f"id,ts,x,group\na,{FIRST},5,g\na,{FIRST + 1},far,g\na,soon,6,g\na,{FIRST + 9},20,g\n")

    refused = backtest("in.csv", "--out", "out.csv")
    assert refused.exit_code == 1
    assert "File 'in.csv': row 2: ts is \"soon\"" in refused.stderr
    assert "--bad-readings drop" in refused.stderr
    assert not list(Path().glob("out.*"))  # nothing half-written stays

    dropped = backtest("in.csv", "--bad-readings", "drop", "--out", "out.csv")
    assert dropped.exit_code == 0, dropped.output
    assert "2 rows of files are not readings" in dropped.stdout
    assert events_in("out.csv") == [("+", "a", FIRST), ("-", "a", FIRST + 9)]


def test_an_attribute_of_csv_is_a_number_unless_it_is_said_to_be_text() -> None:
    Path("in.csv").write_text(f"id,ts,x,group\na,{FIRST},5,7\n")
    for where, arguments, n in ((7, (), 1), ("7", (), 0), ("7", ("--text", "group"), 1), (7, ("--text", "group"), 0)):
        write_queries(q=QUERY | {"where": {"group": where}})
        assert f"{n} events of 1 queries" in backtest("in.csv", *arguments).stdout


def test_the_summary_counts_what_has_no_event() -> None:
    late = {name: [*column, column[0]] for name, column in COLUMNS.items()}
    pq.write_table(pa.table(late), "in.parquet", row_group_size=5)
    write_queries(q=QUERY | {"cooldown": "1h"}, short=QUERY | {"ttl": "2s"})
    source = ReadingFiles([Path("in.parquet")], LINE, batch_rows=5)
    assert [len(piece.readings) for piece in source.pieces() if piece.readings is not None] == [5, 1]

    result = backtest("in.parquet", "in.parquet")

    assert "12 readings in " in result.stdout
    assert "late readings, which changed nothing" in result.stdout
    assert "1 queries ended by their ttl or expires_at" in result.stdout
    # The second visit of the stream a begins in the cooldown, and goes on.
    assert "1 events suppressed by cooldown or max_events" in result.stdout


def test_a_full_disk_ends_the_run_and_leaves_nothing(small_disk: Path) -> None:
    n = 20_000  # events of some 200 bytes each
    columns = {"id": ["a"] * n, "ts": range(FIRST, FIRST + n), "x": [5.0, 20.0] * (n // 2), "group": ["g"] * n}
    pq.write_table(pa.table({name: list(column) for name, column in columns.items()}), "in.parquet")

    result = backtest("in.parquet", "--out", str(small_disk / "out.csv"))

    assert result.exit_code == 1
    assert "out.csv' cannot be written" in result.stderr
    assert "Make room" in result.stderr
    assert not list(small_disk.glob("out*"))


def test_files_of_a_folder_follow_in_the_order_of_their_names() -> None:
    Path("history").mkdir()
    table = pa.table(COLUMNS)
    for first in range(5):
        pq.write_table(table.slice(first, 1), f"history/part-{first}.parquet")
    Path("history/README").write_text("not a file of readings")

    result = backtest("history", "--out", "out.parquet")

    assert result.exit_code == 0, result.output
    assert events_in("out.parquet") == ALL_EVENTS


def test_queries_can_be_put_later_and_the_clock_can_go_on() -> None:
    assert backtest("in.parquet", "--out", "late.parquet", "--put-at", "2023-11-14T22:13:22Z").exit_code == 0
    table = pq.read_table("late.parquet")
    # At 22:13:22 the stream a is inside already, and leaves with the first reading after the put.
    assert table["reason"].to_pylist()[:2] == ["query_registered", "moved"]
    assert sorted(events_in("late.parquet")) == sorted(ALL_EVENTS)

    write_queries(q=QUERY | {"stay_for": "1h"})
    assert "0 events" in backtest("in.parquet").stdout
    moved = backtest("in.parquet", "--clock-end", str(FIRST + 10_000_000), "--out", "stays.parquet")
    assert sorted(events_in("stays.parquet")) == [("+", "a", FIRST + 3000), ("+", "b", FIRST + 4000)], moved.output


def test_the_columns_of_a_file_may_have_other_names() -> None:
    renamed = pa.table(COLUMNS).rename_columns(["vehicle", "time", "x", "group"])
    pq.write_table(renamed, "in.parquet")
    write_queries(q=QUERY | {"feed": "keyed"})

    result = backtest("in.parquet", "--stream-id", "vehicle", "--event-time", "time", feed="keyed")

    assert "4 events" in result.stdout, result.output


@pytest.mark.parametrize(
    ("arguments", "feed", "message"),
    [
        ([], "line", "Name files of readings, or a topic"),
        (["none.parquet"], "line", "There is no file or folder 'none.parquet'"),
        (["bmq.toml"], "line", "ends with none of .parquet"),
        (["in.parquet", "--out", "out.xlsx"], "line", "neither .parquet nor .csv"),
        (["in.parquet", "--out", "in.parquet", "--overwrite"], "line", "which is also a file of readings"),
        (["in.parquet", "--out", "there.csv"], "line", "is there already"),
        (["in.parquet", "--out", "folder.csv", "--overwrite"], "line", "is a folder"),
        (["in.parquet", "--out", "nowhere/out.csv"], "line", "cannot be written"),
        (["in.parquet", "--text", "grup"], "line", "Did you mean 'group'?"),
        (["in.parquet", "--put-at", "noon"], "line", '--put-at is "noon"'),
        (["in.parquet", "--put-at=--5"], "line", '--put-at is "--5"'),
        (["in.parquet", "--clock-end", str(FIRST // 1000)], "line", "the latest event time of the readings is"),
        (["in.parquet"], "lines", "Did you mean 'line'?"),
        (["in.parquet"], "keyed", "is over line, but the readings are of feed 'keyed'"),
    ],
)
def test_what_it_cannot_do_is_refused(arguments: list[str], feed: str, message: str) -> None:
    Path("there.csv").touch()
    Path("folder.csv").mkdir()
    before = Path("in.parquet").read_bytes()

    result = backtest(*arguments, feed=feed)

    assert result.exit_code in (1, 2)
    assert Path("in.parquet").read_bytes() == before
    assert message in " ".join(result.stderr.replace("│", " ").split())


def test_a_feed_whose_id_is_the_key_needs_a_column() -> None:
    write_queries(q=QUERY | {"feed": "keyed"})
    assert "--stream-id" in backtest("in.parquet", feed="keyed").stderr
    assert "--event-time" in backtest("in.parquet", "--stream-id", "id", feed="keyed").stderr
    twice = backtest("in.parquet", "--stream-id", "id", "--event-time", "x", feed="keyed")
    assert "Column 'x' has two roles" in twice.stderr


def test_a_missing_column_is_named() -> None:
    pq.write_table(pa.table(COLUMNS).drop_columns(["x"]), "in.parquet")
    assert "needs one column 'x', but the table has 0" in backtest("in.parquet").stderr
    Path("in.csv").write_text("id,ts,group\n")
    assert "'x'" in backtest("in.csv").stderr


def test_a_damaged_file_is_named_and_leaves_no_events() -> None:
    whole = Path("in.parquet").read_bytes()
    Path("half.parquet").write_bytes(whole[: len(whole) // 2])

    result = backtest("half.parquet", "--out", "out.parquet")

    assert result.exit_code == 1
    assert "File 'half.parquet' cannot be read" in result.stderr
    assert not list(Path().glob("out*"))


@pytest.mark.parametrize("arguments", [[], ["--put-at", "2030-01-01T00:00:00Z"]])
def test_definitions_that_the_service_would_reject_are_all_named(arguments: list[str]) -> None:
    write_queries(a=QUERY | {"kind": "boarder"}, b=QUERY, c=QUERY | {"region": {"box": {"y": [0, 1]}}})

    result = backtest("in.parquet", *arguments)

    assert result.exit_code == 1
    assert "would reject 2 of 3 definitions" in result.stderr
    assert "a: unknown_kind" in result.stderr
    assert "c: unknown_dimension" in result.stderr


def test_queries_over_other_feeds_are_left_out_if_that_is_asked_for() -> None:
    write_queries(q=QUERY, other=QUERY | {"feed": "keyed"})

    result = backtest("in.parquet", "--skip-other-feeds")

    assert "left out: 1 queries over other feeds" in result.stderr
    assert "4 events of 1 queries" in result.stdout


def test_readings_that_max_lateness_holds_back_at_the_end_are_counted() -> None:
    Path("bmq.toml").write_text(CONFIG.replace('topic = "line"', 'topic = "line"\nmax_lateness = "2s"'))

    result = backtest("in.parquet")
    moved = backtest("in.parquet", "--clock-end", str(FIRST + 6001))

    assert "3 readings are still held back by max_lateness; --clock-end TIME applies them" in result.stderr
    assert "1 events of 1 queries" in result.stdout
    assert ("held back" in moved.stderr, "4 events of 1 queries" in moved.stdout) == (False, True)
    assert "held back" in backtest("in.parquet", "--clock-end", str(FIRST + 6000)).stderr


def test_text_is_refused_if_the_service_would_read_a_number() -> None:
    Path("bmq.toml").write_text(CONFIG.replace('topic = "line"', 'topic = "line"\nformat = "csv"'))
    Path("in.csv").write_text(f"id,ts,x,group\na,{FIRST},5,7\n")

    assert backtest("in.csv").exit_code == 0
    assert "Leave --text out" in backtest("in.csv", "--text", "group").stderr


@pytest.mark.parametrize("name", ["in.csv", "in.csv.gz", "IN.CSV.GZ"])
def test_a_header_with_a_column_twice_is_refused(name: str) -> None:
    text = f'\ufeff\n"id",ts,x,group,"x",other,other\na,{FIRST},5,7,50,1,2\n'
    Path(name).write_bytes(gzip.compress(text.encode()) if name.lower().endswith("gz") else text.encode())

    refused = backtest(name)

    assert refused.exit_code == 1
    assert f"File '{name}': the first line has column 'x' twice" in refused.stderr
    assert "Remove or rename one of them" in refused.stderr


def test_a_file_of_the_user_with_the_suffix_part_stays() -> None:
    Path("out.csv.part").write_text("mine")

    assert backtest("in.parquet", "--out", "out.csv").exit_code == 0
    assert Path("out.csv.part").read_text() == "mine"
    assert sorted(path.name for path in Path().glob("out*")) == ["out.csv", "out.csv.part"]


@pytest.mark.parametrize("arguments", [["--out", "out", "--spark"], ["--out", "out.csv", "--out-topic", "out"]])
def test_a_rejected_definition_leaves_nothing_behind(arguments: list[str]) -> None:
    write_queries(a=QUERY | {"kind": "boarder"})

    result = backtest("in.parquet", *arguments)

    assert "a: unknown_kind" in result.stderr  # and not that there is no Kafka
    assert not list(Path().glob("out*"))


def test_a_refused_topic_leaves_no_file() -> None:
    result = backtest("in.parquet", "--out", "out.csv", "--out-topic", "line")

    assert "for something else" in result.stderr
    assert not list(Path().glob("out*"))
    assert "neither .parquet" in backtest("in.parquet", "--out", "out.xls", "--out-topic", "line").stderr
