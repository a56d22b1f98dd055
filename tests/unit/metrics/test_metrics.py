"""The metrics endpoint: every promised name is there, and the numbers add up."""

import re
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from bmq.errors import SetupError
from bmq.metrics.counters import LATENCY_BUCKETS_SECONDS, ShardCounters, Totals, count_latencies
from bmq.metrics.endpoint import Place
from bmq.metrics.metrics import Metrics

# By name, type and labels, as docs/operations.md promises them to users' dashboards.
PROMISED = {
    "bmq_readings_total": ("counter", {"feed"}),
    "bmq_events_total": ("counter", {"kind", "sign", "reason"}),
    "bmq_dead_letters_total": ("counter", {"feed", "code"}),
    "bmq_late_readings_total": ("counter", {"feed"}),
    "bmq_lost_offsets_total": ("counter", {"feed"}),
    "bmq_suppressed_events_total": ("counter", {"feed"}),
    "bmq_clock_seconds": ("gauge", {"feed"}),
    "bmq_pending_crossings": ("gauge", set()),
    "bmq_queries": ("gauge", {"kind"}),
    "bmq_tenant_queries": ("gauge", {"tenant"}),
    "bmq_tenant_streams": ("gauge", {"tenant"}),
    "bmq_streams": ("gauge", {"feed"}),
    "bmq_lagging_streams": ("gauge", {"feed"}),
    "bmq_stream_lag_seconds": ("gauge", {"feed"}),
    "bmq_replies_total": ("counter", {"status"}),
    "bmq_index_visits_total": ("counter", {"engine"}),
    "bmq_processing_efficiency": ("gauge", {"engine"}),
    "bmq_batch_seconds": ("histogram", {"le"}),
    "bmq_event_latency_seconds": ("histogram", {"le"}),
    "bmq_input_lag_records": ("gauge", {"feed", "partition"}),
    "bmq_state_bytes": ("gauge", set()),
    "bmq_replica_rebuilds_total": ("counter", set()),
    "bmq_up": ("gauge", set()),
}

FULL: ShardCounters = {
    "shard": 0,
    "readings": {"stocks": 90, "vehicles": 10},
    "late": {"stocks": 3},
    "lost": {"stocks": 12},
    "suppressed": {"stocks": 5},
    "clocks": {"stocks": 1_700_000_000_500},
    "dead_letters": {"stocks": {"not_json": 2, "wrong_type": 1}},
    "events": [("border", "+", "moved", 5), ("border", "-", "moved", 4), ("window_join", "", "", 3)],
    "replies": {"accepted": 7, "rejected": 1},
    "queries": {"border": 7, "band_join": 2},
    "streams": {"stocks": 20, "vehicles": 4},
    "lagging": {"stocks": 2, "vehicles": 0},
    "max_lags": {"stocks": 1_500, "vehicles": 0},
    "pending": 6,
    "tenants": {"acme": 4},
    "tenant_streams": {"acme": 90},
    "visits": {"border": 40, "levels": 0, "joins": 20},
    "useful": {"border": 10, "levels": 0, "joins": 15},
    "state_bytes": 1000,
    "replica_rebuilds": 2,
    "latency": {"counts": [1, *[0] * (len(LATENCY_BUCKETS_SECONDS) - 1), 2], "sum_seconds": 200.25},
}


@pytest.fixture
def metrics() -> Iterator[Metrics]:
    metrics = Metrics(Place(0))
    metrics.start()
    yield metrics
    metrics.stop()


Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def scrape(metrics: Metrics) -> tuple[Samples, dict[str, tuple[str, str]]]:
    """Return {(sample name, sorted labels): value} and {family name: (type, help)}, read over HTTP."""
    with urlopen(f"http://127.0.0.1:{metrics.port}/metrics", timeout=5) as response:
        text = response.read().decode()
    families = list(text_string_to_metric_families(text))
    samples = {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in families
        for sample in family.samples
    }
    kinds = {
        family.name + "_total" * (family.type == "counter"): (family.type, family.documentation) for family in families
    }
    return samples, kinds


def test_every_promised_metric_is_there_from_the_start_with_a_help_text(metrics: Metrics) -> None:
    _, kinds = scrape(metrics)

    for name, (kind, _) in PROMISED.items():
        assert kinds[name][0] == kind
        assert kinds[name][1].endswith(".")


def test_every_promised_metric_carries_exactly_the_promised_labels(metrics: Metrics) -> None:
    metrics.add([FULL])
    metrics.batch(0.4)
    metrics.lag("stocks", 0, 17)

    samples, _ = scrape(metrics)

    for name, (kind, labels) in PROMISED.items():
        sample_name = name + "_bucket" * (kind == "histogram")
        found = [set(dict(key)) for (sample, key) in samples if sample == sample_name]
        assert found, f"{name} has no sample"
        assert all(keys == labels for keys in found)


def test_every_promised_metric_is_in_the_documents_with_its_labels() -> None:
    text = (Path(__file__).parents[3] / "docs/operations.md").read_text(encoding="utf-8")

    for name, (_, labels) in PROMISED.items():
        documented = re.search(rf"`{name}(?:\{{([\w,]+)\}})?`", text)
        assert documented is not None, f"{name} is not in docs/operations.md"
        assert set(filter(None, (documented[1] or "").split(","))) == labels - {"le"}


def test_the_numbers_of_one_batch_come_back(metrics: Metrics) -> None:
    metrics.add([FULL])
    metrics.batch(0.4)
    metrics.lag("stocks", 3, 17)
    metrics.running()

    samples, _ = scrape(metrics)

    expected = {
        ("bmq_readings_total", (("feed", "stocks"),)): 90,
        ("bmq_late_readings_total", (("feed", "stocks"),)): 3,
        ("bmq_lost_offsets_total", (("feed", "stocks"),)): 12,
        ("bmq_suppressed_events_total", (("feed", "stocks"),)): 5,
        ("bmq_clock_seconds", (("feed", "stocks"),)): 1_700_000_000.5,
        ("bmq_dead_letters_total", (("code", "not_json"), ("feed", "stocks"))): 2,
        ("bmq_events_total", (("kind", "border"), ("reason", "moved"), ("sign", "-"))): 4,
        ("bmq_events_total", (("kind", "window_join"), ("reason", ""), ("sign", ""))): 3,
        ("bmq_replies_total", (("status", "rejected"),)): 1,
        ("bmq_queries", (("kind", "border"),)): 7,
        ("bmq_tenant_queries", (("tenant", "acme"),)): 4,
        ("bmq_tenant_streams", (("tenant", "acme"),)): 90,
        ("bmq_streams", (("feed", "vehicles"),)): 4,
        ("bmq_lagging_streams", (("feed", "stocks"),)): 2,
        ("bmq_stream_lag_seconds", (("feed", "stocks"),)): 1.5,
        ("bmq_stream_lag_seconds", (("feed", "vehicles"),)): 0,
        ("bmq_queries", (("kind", "band_join"),)): 2,
        ("bmq_index_visits_total", (("engine", "border"),)): 40,
        ("bmq_index_visits_total", (("engine", "joins"),)): 20,
        ("bmq_processing_efficiency", (("engine", "border"),)): 0.25,
        ("bmq_processing_efficiency", (("engine", "joins"),)): 0.75,
        ("bmq_pending_crossings", ()): 6,
        ("bmq_state_bytes", ()): 1000,
        ("bmq_replica_rebuilds_total", ()): 2,
        ("bmq_input_lag_records", (("feed", "stocks"), ("partition", "3"))): 17,
        ("bmq_up", ()): 1,
        ("bmq_batch_seconds_count", ()): 1,
        ("bmq_batch_seconds_sum", ()): 0.4,
        ("bmq_event_latency_seconds_bucket", (("le", "0.01"),)): 1,
        ("bmq_event_latency_seconds_bucket", (("le", "60.0"),)): 1,
        ("bmq_event_latency_seconds_bucket", (("le", "+Inf"),)): 3,
        ("bmq_event_latency_seconds_count", ()): 3,
        ("bmq_event_latency_seconds_sum", ()): 200.25,
    }
    assert {key: samples[key] for key in expected} == expected


def test_lags_of_a_batch_are_the_largest_of_its_shards_and_do_not_outlive_it(metrics: Metrics) -> None:
    def shard(number: int, lag_ms: int, n_lagging: int) -> ShardCounters:
        return {"shard": number, "readings": {"a": 1}, "lagging": {"a": n_lagging}, "max_lags": {"a": lag_ms}}

    metrics.add([shard(0, 2_000, 1), shard(1, 5_000, 2)])
    first, _ = scrape(metrics)
    metrics.add([shard(0, 0, 0)])
    second, _ = scrape(metrics)

    of_feed = (("feed", "a"),)
    names = ("bmq_stream_lag_seconds", "bmq_lagging_streams")
    assert [first[name, of_feed] for name in names] == [5, 3]
    assert [second[name, of_feed] for name in names] == [0, 2]


def test_up_is_0_before_the_start_and_after_the_end(metrics: Metrics) -> None:
    seen = [scrape(metrics)[0]["bmq_up", ()]]
    metrics.running()
    seen.append(scrape(metrics)[0]["bmq_up", ()])
    metrics.ended()
    seen.append(scrape(metrics)[0]["bmq_up", ()])

    assert seen == [0, 1, 0]


def test_the_feeds_of_the_configuration_count_from_0() -> None:
    metrics = Metrics(Place(0), feeds=["stocks"])
    metrics.start()
    try:
        samples, _ = scrape(metrics)
    finally:
        metrics.stop()

    assert samples["bmq_readings_total", (("feed", "stocks"),)] == 0


def test_a_taken_port_is_one_sentence_with_a_way_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

        with pytest.raises(SetupError, match=rf"127.0.0.1:{port}.*set another port under \[metrics\]"):
            Metrics(Place(port)).start()


def test_a_shard_that_is_absent_in_a_batch_keeps_its_sizes() -> None:
    totals = Totals()
    totals.add(
        [
            {"shard": 0, "streams": {"f": 10}, "state_bytes": 100, "pending": 1},
            {"shard": 1, "streams": {"f": 5}, "state_bytes": 50, "pending": 2},
        ]
    )
    totals.add([{"shard": 1, "streams": {"f": 6}, "state_bytes": 60, "pending": 4}])

    assert totals.streams() == {"f": 16}
    assert totals.state_bytes() == 160
    assert totals.pending() == 5


def test_a_clock_is_that_of_the_shard_that_is_furthest_since_others_may_have_had_no_work() -> None:
    totals = Totals()
    totals.add([{"shard": 1, "clocks": {"f": 7, "g": -5}}, {"shard": 0, "clocks": {"f": 6}}])
    totals.add([{"shard": 0, "clocks": {"f": 6, "g": -4}}])

    assert totals.clocks == {"f": 7, "g": -4}


def test_a_query_counts_once_and_not_once_a_shard() -> None:
    totals = Totals()
    totals.add([{"shard": 2, "queries": {"border": 3}}, {"shard": 1, "queries": {"border": 3}}])

    assert totals.queries == {"border": 3}


def test_a_kind_whose_last_query_went_shows_0() -> None:
    totals = Totals()
    totals.add([{"shard": 0, "queries": {"border": 3}}])
    totals.add([{"shard": 0, "queries": {}}])

    assert totals.queries == {"border": 0}


def test_a_batch_without_counters_changes_nothing() -> None:
    totals = Totals()
    totals.add([FULL])
    totals.add([])

    assert totals.readings == {"stocks": 90, "vehicles": 10}
    assert totals.queries == {"border": 7, "band_join": 2}


def test_an_engine_without_visits_has_no_efficiency() -> None:
    totals = Totals()
    totals.add([{"shard": 0, "visits": {"grid": 0}, "useful": {"grid": 0}}])

    assert totals.processing_efficiency() == {}


# Whole and half buckets, so that values meet the bucket's ends.
latencies = st.lists(st.sampled_from([-5, 0, 1, 10, 11, 25, 500, 501, 60_000, 60_001, 10**9]))


@given(milliseconds=latencies)
def test_a_latency_counts_in_the_first_bucket_whose_end_it_does_not_exceed(milliseconds: list[int]) -> None:
    counted = count_latencies(np.array(milliseconds, dtype=np.int64))

    expected = [0] * (len(LATENCY_BUCKETS_SECONDS) + 1)
    for ms in milliseconds:
        expected[sum(end < max(ms, 0) / 1000 for end in LATENCY_BUCKETS_SECONDS)] += 1
    assert counted["counts"] == expected
    assert counted["sum_seconds"] == pytest.approx(sum(max(ms, 0) for ms in milliseconds) / 1000)
