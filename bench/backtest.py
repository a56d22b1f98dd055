"""Measures `bmq backtest` from Parquet to Parquet: `python -m bench.backtest [--readings N] [--runs N]`.

Claim: at least 2 M readings/s on two cores at 0.1 events a reading. Squares in a plane, streams that walk at random.
The events of sampled streams are compared with those of asking every square about every reading, before a time is
printed.
"""

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

SEED = 20060509
N_STREAMS, N_QUERIES = 20_000, 1_000
SIDE, SQUARE, STEP = 100.0, 2.0, 0.165  # of the plane, of a square, standard deviation of a step
FIRST_TIME, STEP_MS = 1_700_000_000_000, 5_000
STEPS_PER_GROUP = 10
N_SAMPLED = 50
CONFIG = '[feeds.vehicles]\ntopic = "vehicles"\nstream_id = "id"\nevent_time = "ts"\ndimensions = ["x", "y"]\n'

Floats = npt.NDArray[np.float64]


def main() -> None:
    """Write readings and queries, run the command, check, and print the rates."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--readings", type=int, default=10_000_000)
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        corners, sampled = write_input(folder, options.readings // N_STREAMS)
        rates = [run(folder) for _ in range(options.runs + 1)][1:]  # the first one brings files into the cache
        events = pq.read_table(folder / "events.parquet", columns=["stream_id", "query_id", "sign", "event_time"])
        check(events, corners, sampled)
    n_readings = options.readings // N_STREAMS * N_STREAMS
    median = statistics.median(rates)
    print(f"readings={n_readings} events_per_reading={events.num_rows / n_readings:.3f} ", end="")
    print(f"readings_per_s={median:,.0f} lowest={min(rates):,.0f} highest={max(rates):,.0f} runs={len(rates)}")


def write_input(folder: Path, n_steps: int) -> tuple[Floats, Floats]:
    """Write configuration, queries and readings; return the corners of the squares, and where sampled streams were.

    Returns
    -------
    float64[n_queries, 2], float64[n_steps, n_sampled, 2]
    """
    rng = np.random.default_rng(SEED)
    corners = rng.uniform(0, SIDE - SQUARE, (N_QUERIES, 2))
    definitions = {
        f"square-{number}": {
            "kind": "border",
            "feed": "vehicles",
            "region": {"box": {"x": [x, x + SQUARE], "y": [y, y + SQUARE]}},
        }
        for number, (x, y) in enumerate(corners.tolist())
    }
    (folder / "queries.json").write_text(json.dumps(definitions))
    (folder / "bmq.toml").write_text(CONFIG)
    names = pa.array([f"vehicle-{number}" for number in range(N_STREAMS)])
    places = rng.uniform(0, SIDE, (N_STREAMS, 2))
    sampled = np.empty((n_steps, N_SAMPLED, 2))
    schema = pa.schema(
        [("id", pa.string()), ("ts", pa.timestamp("ms", "UTC")), ("x", pa.float64()), ("y", pa.float64())]
    )
    tables: list[pa.Table] = []
    with pq.ParquetWriter(folder / "readings.parquet", schema) as writer:
        for step in range(n_steps):
            places = np.clip(places + rng.normal(0, STEP, places.shape), 0, SIDE)
            sampled[step] = places[:N_SAMPLED]
            times = pa.array(np.full(N_STREAMS, FIRST_TIME + step * STEP_MS)).cast(schema.field("ts").type)
            tables.append(pa.table([names, times, *(places[:, k].copy() for k in range(2))], schema=schema))
            if len(tables) == STEPS_PER_GROUP or step == n_steps - 1:
                writer.write_table(pa.concat_tables(tables).combine_chunks())
                tables = []
    return corners, sampled


def run(folder: Path) -> float:
    """Run the command; return the readings/s that it prints: reading, matching and writing, without its start."""
    config, queries, readings, events = (
        str(folder / name) for name in ("bmq.toml", "queries.json", "readings.parquet", "events.parquet")
    )
    command = [sys.executable, "-m", "bmq.cli", "backtest", "--config", config, "--queries", queries]
    command += ["--feed", "vehicles", readings, "--out", events, "--overwrite"]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found = re.search(r", ([\d,]+) readings/s", printed)
    assert found is not None, printed
    return float(found[1].replace(",", ""))


def check(events: pa.Table, corners: Floats, sampled: Floats) -> None:
    """Compare the events of the sampled streams with those of asking every square about every reading."""
    names = pa.array([f"vehicle-{number}" for number in range(N_SAMPLED)])
    some = events.filter(pc.is_in(events["stream_id"], names))
    rows = zip(*(some[name].to_pylist() for name in ("stream_id", "query_id", "sign")), strict=True)
    times = some["event_time"].cast(pa.int64()).to_pylist()
    found = sorted((*row, time) for row, time in zip(rows, times, strict=True))
    expected = []
    was_inside = np.zeros((N_SAMPLED, N_QUERIES), dtype=np.bool_)
    for step, places in enumerate(sampled):
        offsets = places[:, None, :] - corners[None, :, :]
        # As the service computes it: lower border <= value < upper border.
        below = places[:, None, :] < (corners + SQUARE)[None, :, :]
        is_inside = ((offsets >= 0) & below).all(axis=2)
        time = FIRST_TIME + step * STEP_MS
        for stream, query in np.argwhere(is_inside != was_inside).tolist():
            sign = "+" if is_inside[stream, query] else "-"
            expected.append((f"vehicle-{stream}", f"square-{query}", sign, time))
        was_inside = is_inside
    assert found == sorted(expected), f"{len(found)} events, but {len(expected)} were expected"
    assert found


if __name__ == "__main__":
    main()
