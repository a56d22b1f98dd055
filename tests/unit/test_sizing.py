"""How large a machine must be: by hand, and what must hold for every demand."""

import dataclasses
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bmq.sizing import BUSY_SHARE, MEASURED, Costs, Demand, need

BENCHMARKS = Path(__file__).parents[2] / "bench" / "README.md"

ROUND = Costs(
    reading_us=2.0,
    event_us=10.0,
    stream_bytes=100,
    query_bytes=1_000,
    home_bytes=50_000_000,
    other_bytes=2_000_000_000,
    checkpoint_stream_bytes=60,
    checkpoint_query_bytes=300,
    reading_bytes=70,
    event_bytes=250,
)
DEMANDS = st.builds(
    Demand,
    st.integers(1, 10**8),
    st.integers(0, 10**7),
    st.floats(0, 1e7),
    st.floats(0, 100),
)


def test_a_demand_by_hand() -> None:
    found = need(Demand(streams=1_000_000, queries=10_000, rate=1e6, events_per_reading=0.1), ROUND)

    assert found.busy_cores == 3.0  # 2 µs and a tenth of 10 µs a reading
    assert found.cores == 5  # 60 % of them busy
    assert found.home_bytes == 50_000_000 + 200_000 * 100 + 10_000 * 1_000
    assert found.memory_bytes == 5 * found.home_bytes + 2_000_000_000
    assert found.checkpoint_bytes == 1_000_000 * 60 + 10_000 * 300
    assert (found.in_bytes, found.out_bytes) == (70e6, 25e6)


def test_every_cost_was_measured() -> None:
    costs = dataclasses.asdict(MEASURED)
    assert all(value > 0 for value in costs.values())

    (printed,) = re.findall(r"^    costs (.*)$", BENCHMARKS.read_text(encoding="utf-8"), re.MULTILINE)
    measured = {name: float(value) for name, value in (pair.split("=") for pair in printed.split())}
    # The plan takes the most of all points for the other processes; the line has that of the base.
    assert costs.pop("other_bytes") >= measured["other_bytes"]
    assert costs == pytest.approx({name: measured[name] for name in costs}, rel=0.01)


@given(DEMANDS, st.sampled_from(["streams", "queries", "rate", "events_per_reading"]))
def test_more_of_anything_never_takes_less(demand: Demand, field: str) -> None:
    before = need(demand)
    after = need(dataclasses.replace(demand, **{field: 2 * getattr(demand, field)}))

    assert after.cores >= before.cores >= 1
    assert after.busy_cores / BUSY_SHARE <= after.cores
    assert after.memory_bytes >= before.memory_bytes
    assert after.checkpoint_bytes >= before.checkpoint_bytes
    assert after.in_bytes >= before.in_bytes
    assert after.out_bytes >= before.out_bytes
