"""`BrokerWatch` reports a broker that does not answer, and that it does again."""

import logging
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from bmq.broker.broker import Broker
from bmq.broker.ports import free_ports
from bmq.job import watchdog
from bmq.job.watchdog import BrokerWatch
from bmq.metrics.health import Health
from tests.brokers import pid_of, wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(180)]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    (port,) = free_ports(1)
    with Broker(tmp_path / "kafka", port) as broker:
        yield broker


def test_a_broker_that_stands_still_is_reported_and_its_return_too(
    broker: Broker, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watchdog, "ASK_SECONDS", 0.2)
    monkeypatch.setattr(watchdog, "BROKER_LIMIT_SECONDS", 1.0)
    caplog.set_level(logging.INFO, "bmq.job.watchdog")
    health = Health(float("inf"))
    watch = BrokerWatch({"bootstrap.servers": broker.bootstrap_servers}, health)
    watch.start()
    os.kill(pid_of(broker), signal.SIGSTOP)
    try:
        wait_until(lambda: "No broker at 127.0.0.1" in caplog.text, "the warning", 60)
        assert health.state().broker_silent_seconds > 0
    finally:
        os.kill(pid_of(broker), signal.SIGCONT)
    wait_until(lambda: "Kafka answers again" in caplog.text, "the return", 60)
    watch.stop()

    assert health.state().broker_silent_seconds == 0
    assert caplog.text.count("No broker at") == 1
