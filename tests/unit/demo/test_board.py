"""What the demo shows follows from what the service counted."""

import io
import math
from itertools import islice, pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from bmq.broker.ports import free_ports
from bmq.config import load_config
from bmq.demo.board import LiveView, PlainView
from bmq.demo.child import write_config
from bmq.demo.feeder import take_turns
from bmq.demo.flights import Flights
from bmq.demo.run import SCENES
from bmq.metrics.counters import LATENCY_BUCKETS_SECONDS, count_latencies
from bmq.metrics.endpoint import Place
from bmq.metrics.metrics import Metrics
from bmq.records import Float64s
from bmq.view.figures import Figures, MetricsPlace, quantile, read_figures, scrape
from bmq.wire.control import validate_definition

EARLIER = Figures(
    up=True, readings=1_000, events=100, queries=5, batches=2, batch_seconds=1, latency=((1, 90), (2, 100))
)
LATER = Figures(up=True, readings=7_000, events=700, queries=6, batches=8, batch_seconds=4, latency=((1, 90), (2, 700)))


def test_figures_are_what_the_service_shows() -> None:
    metrics = Metrics(Place(0), feeds=["stocks"])
    metrics.start()
    metrics.running()
    metrics.batch(0.5)
    metrics.add(
        [
            {
                "shard": n,
                "readings": {"stocks": 10},
                "events": [("border", "+", "moved", 2)],
                "queries": {"border": 7},
                "streams": {"stocks": 5},
                "latency": count_latencies(np.array([250, 350])),
            }
            for n in range(2)
        ]
    )

    figures = scrape(MetricsPlace(metrics.port))
    metrics.stop()

    assert figures is not None
    assert (figures.up, figures.readings, figures.events) == (True, 20, 4)
    assert (figures.queries, figures.streams) == (7, 10)
    assert figures.seconds_per_batch == 0.5
    assert figures.latency_at(1.0) == 0.4


def test_a_service_that_is_not_there_yet_has_no_figures() -> None:
    assert scrape(MetricsPlace(free_ports(1)[0])) is None


def test_what_was_added_is_counted_and_sizes_stay() -> None:
    added = LATER.since(EARLIER)

    assert (added.readings, added.events, added.queries, added.batches) == (6_000, 600, 6, 6)
    assert added.latency == ((1, 0), (2, 600))


def test_no_events_have_no_latency() -> None:
    assert Figures().latency_at(0.5) is None
    assert read_figures("").latency_at(0.5) is None


@given(
    milliseconds=st.lists(st.integers(0, 60_000), min_size=1),
    share=st.sampled_from([0.01, 0.5, 0.99, 1.0]),
)
def test_a_quantile_lies_in_the_bucket_of_the_true_one(milliseconds: list[int], share: float) -> None:
    counts = np.cumsum(count_latencies(np.array(milliseconds))["counts"]).tolist()
    ends = (*LATENCY_BUCKETS_SECONDS, math.inf)

    estimate = quantile(list(zip(ends, counts, strict=True)), share)

    true = sorted(milliseconds)[math.ceil(share * len(milliseconds)) - 1] / 1000
    low, high = next((low, high) for low, high in pairwise((0.0, *ends)) if true <= high)
    assert estimate is not None
    assert low <= estimate <= high


@given(n_streams=st.integers(1, 20), burst=st.sampled_from([0.1, 1.0, 3.4, 50.0]))
def test_every_stream_reports_in_turn_and_never_twice_in_a_burst(n_streams: int, burst: float) -> None:
    bursts = list(islice(take_turns(n_streams, burst), 30))

    assert all(len(set(rows.tolist())) == rows.size for rows in bursts)
    all_rows = np.concatenate(bursts)
    assert np.array_equal(all_rows, np.arange(all_rows.size) % n_streams)


@pytest.mark.parametrize("name", SCENES)
def test_the_queries_of_the_demo_are_valid_under_its_configuration(name: str, tmp_path: Path) -> None:
    scene = SCENES[name](0)
    config = load_config(write_config(tmp_path, scene.worlds, "127.0.0.1:9092", 9108))

    assert sum(scene.shares(1_000)) == pytest.approx(1_000)
    for query_id, definition in scene.queries.items():
        validate_definition(query_id, definition, config.installation())


def test_a_plane_flies_as_far_as_its_speed_and_stays_on_the_globe() -> None:
    flights = Flights(200, seed=3)
    rows = np.arange(200)
    before = flights.move(rows, 0.0)
    farthest = flights.METRES_A_SECOND * 1.15

    for _ in range(300):
        after = flights.move(rows, 1.0)
        metres = 6_371_008.8 * _angles(before, after)
        # A plane that lands is at its city, and has flown less than the rest of its way.
        assert metres.max() <= farthest + 100.0
        assert (np.abs(after) <= [[180.0], [90.0]]).all()
        before = after


def _angles(a: Float64s, b: Float64s) -> Float64s:
    """Return the angles between places on the globe, in radians."""
    (lon1, lat1), (lon2, lat2) = np.radians(a), np.radians(b)
    half = np.sin((lat2 - lat1) / 2) ** 2 + np.cos(lat1) * np.cos(lat2) * np.sin((lon2 - lon1) / 2) ** 2
    angles: Float64s = 2 * np.arcsin(np.sqrt(half))
    return angles


def test_without_a_terminal_each_refresh_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with PlainView() as view:
        view.show(12.0, LATER.since(EARLIER), 2.0, ["a entered q at x=1 (moved)", "b left q at x=2 (moved)"])

    (line,) = capsys.readouterr().out.splitlines()
    assert line == (
        "   12 s  readings/s 3,000, events/s 300, latency p50 1.50 s, p99 1.99 s, batch 0.50 s, queries 6, "
        "streams 0  |  b left q at x=2 (moved)"
    )


def test_a_terminal_shows_numbers_and_crossings() -> None:
    screen = io.StringIO()
    console = Console(file=screen, width=100, force_terminal=True, color_system=None)

    with LiveView("Vehicles", console) as view:
        view.show(12.0, LATER.since(EARLIER), 2.0, ["v17 entered garage-4 at x=1, y=2 (moved)"])

    assert "Vehicles, 12 s" in screen.getvalue()
    assert "3,000" in screen.getvalue()
    assert "v17 entered garage-4 at x=1, y=2" in screen.getvalue()
