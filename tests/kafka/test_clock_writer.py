"""Marks on a real broker: written when nothing runs, and never a reason to stop."""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from kafka import KafkaConsumer

from bmq.broker.ports import free_ports
from bmq.job.idle import ClockWriter, IdleFeeds
from bmq.wire.marks import parse_mark
from tests.kafka_records import read_all

pytestmark = pytest.mark.kafka

LIMIT_MS = 60_000


@contextmanager
def running(writer: ClockWriter) -> Iterator[None]:
    writer.start()
    try:
        yield
    finally:
        writer.stop()


def test_first_it_asks_for_the_clock_and_then_moves_it_until_readings_come(
    bootstrap_servers: str, topics: Callable[..., str]
) -> None:
    topic = topics("clock")
    feeds = IdleFeeds({"f": 0})
    consumer = KafkaConsumer(
        topic, bootstrap_servers=bootstrap_servers, auto_offset_reset="earliest", consumer_timeout_ms=LIMIT_MS
    )
    with running(ClockWriter({"bootstrap.servers": bootstrap_servers}, topic, feeds, lambda: False)):
        assert parse_mark(next(consumer).value) == ("f", None)

        emitted = time.monotonic_ns() // 1_000_000
        feeds.note_batch([{"shard": 0, "clocks": {"f": 7_000}}], emitted)
        marks = [parse_mark(next(consumer).value) for _ in range(3)]
        elapsed = time.monotonic_ns() // 1_000_000 - emitted
    consumer.close()

    times = [mark[1] for mark in marks if mark is not None and mark[1] is not None]
    assert 7_000 <= times[-2] < times[-1] <= 7_000 + elapsed


def test_nothing_is_written_while_a_batch_runs(bootstrap_servers: str, topics: Callable[..., str]) -> None:
    topic = topics("clock")
    looked = threading.Semaphore(0)

    def is_busy() -> bool:
        looked.release()
        return True

    with running(ClockWriter({"bootstrap.servers": bootstrap_servers}, topic, IdleFeeds({"f": 0}), is_busy)):
        assert all(looked.acquire(timeout=LIMIT_MS / 1000) for _ in range(3))

    assert list(read_all(bootstrap_servers, topic)) == []


def test_a_broker_that_is_gone_is_said_once_and_hinders_nobody(caplog: pytest.LogCaptureFixture) -> None:
    options = {"bootstrap.servers": f"127.0.0.1:{free_ports(1)[0]}", "message.timeout.ms": "100"}
    n_looks = 0
    has_failed_twice = threading.Event()

    def is_busy() -> bool:
        nonlocal n_looks
        n_looks += 1
        if n_looks == 30:  # three seconds: at least two marks have failed
            has_failed_twice.set()
        return False

    with (
        caplog.at_level(logging.WARNING, "bmq.job.idle"),
        running(ClockWriter(options, "clock", IdleFeeds({"f": 0}), is_busy)),
    ):
        assert has_failed_twice.wait(LIMIT_MS / 1000)

    warnings = [record.getMessage() for record in caplog.records if record.name == "bmq.job.idle"]
    assert len(warnings) == 1
    assert warnings[0].startswith("Marks cannot be written to clock")


def test_a_fault_of_whoever_is_asked_is_said_and_tried_again(
    bootstrap_servers: str, topics: Callable[..., str], caplog: pytest.LogCaptureFixture
) -> None:
    topic = topics("clock")
    n_looks = 0

    def is_busy() -> bool:
        nonlocal n_looks
        n_looks += 1
        if n_looks < 3:
            raise RuntimeError("no answer")
        return False

    consumer = KafkaConsumer(
        topic, bootstrap_servers=bootstrap_servers, auto_offset_reset="earliest", consumer_timeout_ms=LIMIT_MS
    )
    with running(ClockWriter({"bootstrap.servers": bootstrap_servers}, topic, IdleFeeds({"f": 0}), is_busy)):
        assert parse_mark(next(consumer).value) == ("f", None)
    consumer.close()

    assert "RuntimeError: no answer" in caplog.text
