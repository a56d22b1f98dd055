"""`bmq serve` and `bmq demo` as processes: everything runs, and everything ends."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.request import urlopen

import pytest
from kafka import KafkaProducer
from typer.testing import CliRunner

from bmq.broker.ports import free_ports, require_free
from bmq.cli import app
from bmq.job.service import FEED_PARTITIONS
from bmq.view.figures import Figures, MetricsPlace, scrape
from tests.brokers import wait_until
from tests.ledger_check import must_be_whole

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[2]
START_LIMIT_SECONDS = 240.0  # Spark takes 10 to 20; compiling the kernels for the first time a minute
LIMIT_SECONDS = 90.0  # for a few batches
OWN_LINE = re.compile(r"\d{4}-\d\d-\d\d [\d:,]{12} [A-Z]+ bmq")
ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT / "service")}


@dataclass(frozen=True)
class Served:
    """A running `bmq serve` with a Kafka of its own."""

    process: subprocess.Popen[bytes]
    servers: str
    config: Path
    metrics_port: int
    log: Path


def start_serve(folder: Path, batch_timeout: str = "10m") -> tuple[subprocess.Popen[bytes], Path, Path, int]:
    """Start `bmq serve` in ``folder``; return the process, its configuration, log and metrics port."""
    (port,) = free_ports(1)
    config, log = folder / "c.toml", folder / "serve.log"
    config.write_text(
        f"""
        [feeds.stocks]
        topic = "stocks"
        stream_id = "symbol"
        dimensions = ["price"]
        [job]
        shards = 2
        batch_timeout = "{batch_timeout}"
        [metrics]
        port = {port}
        """
    )
    command = [sys.executable, "-m", "bmq.cli", "serve", "--config", str(config)]
    with log.open("wb") as output:
        process = subprocess.Popen(command, cwd=folder, stdout=output, stderr=subprocess.STDOUT, env=ENVIRONMENT)
    return process, config, log, port


def wait_for(fact: Callable[[], bool], process: subprocess.Popen[bytes], log: Path, limit: float) -> None:
    """Return when ``fact`` holds; fail with the log where the process ends before, or the time is over."""
    deadline = time.monotonic() + limit
    while not fact():
        try:
            code: int | None = process.wait(0.1)
        except subprocess.TimeoutExpired:
            code = None
        if code is not None or time.monotonic() > deadline:
            pytest.fail(f"exit code {code}; log:\n{log.read_text(errors='replace')[-4000:]}")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("serve")
    process, config, log, port = start_serve(folder)
    try:
        wait_for(lambda: (scrape(MetricsPlace(port)) or Figures()).up, process, log, START_LIMIT_SECONDS)
        address = re.search(r"its own at (\S+:\d+)", log.read_text())
        assert address is not None
        yield Served(process, address[1], config, port, log)
    finally:
        process.kill()
        process.wait()


def test_a_query_put_by_command_line_gives_events_and_figures(served: Served) -> None:
    definition = {"kind": "border", "feed": "stocks", "region": {"box": {"price": [40, 50]}}}
    target = ["--config", str(served.config), "--bootstrap", served.servers]
    put = CliRunner().invoke(
        app,
        ["query", "put", "q", "-", "--timeout", str(LIMIT_SECONDS), *target],
        input=json.dumps(definition),
    )
    producer = KafkaProducer(bootstrap_servers=served.servers)
    for price in (30, 45, 47, 55):
        producer.send("stocks", json.dumps({"symbol": "A", "price": price}).encode(), b"A").get(LIMIT_SECONDS)
    producer.close()

    events = CliRunner().invoke(
        app,
        ["events", "--from-beginning", "--json", "--limit", "2", "--timeout", str(LIMIT_SECONDS), *target],
    )

    assert (put.exit_code, put.stdout) == (0, "accepted: q, version 1\n")
    crossings = [json.loads(line) for line in events.stdout.splitlines()]
    assert [(event["sign"], event["value"]["price"]) for event in crossings] == [("+", 45.0), ("-", 55.0)]

    def counted() -> bool:
        figures = scrape(MetricsPlace(served.metrics_port)) or Figures()
        return (figures.readings, figures.events, figures.queries, figures.streams) == (4, 2, 1, 1)

    wait_for(counted, served.process, served.log, LIMIT_SECONDS)
    assert (scrape(MetricsPlace(served.metrics_port)) or Figures()).latency_at(1.0) is not None
    with urlopen(f"http://127.0.0.1:{served.metrics_port}/metrics", timeout=5) as response:
        lags = re.findall(
            r'^bmq_input_lag_records\{feed="stocks",partition="\d"\} (.+)$', response.read().decode(), re.M
        )
    assert lags == ["0.0"] * FEED_PARTITIONS
    must_be_whole(served.servers, "bmq.events")


def test_sigterm_ends_service_and_kafka_in_order(served: Served) -> None:
    served.process.terminate()

    assert served.process.wait(LIMIT_SECONDS) == 0
    log = served.log.read_text()
    # Each line is the service's own: nothing of Spark's workers, which the JVM closes after a minute without work.
    assert [line for line in log.splitlines() if not OWN_LINE.match(line)] == []
    require_free(int(served.servers.rpartition(":")[2]))


def test_a_second_signal_ends_everything_at_once(tmp_path: Path) -> None:
    process, _, log, _ = start_serve(tmp_path)
    try:
        wait_for(lambda: "Broker started" in log.read_text(), process, log, START_LIMIT_SECONDS)
        process.send_signal(signal.SIGTERM)
        wait_for(lambda: "SIGTERM: stopping" in log.read_text(), process, log, LIMIT_SECONDS)

        process.send_signal(signal.SIGINT)

        assert process.wait(LIMIT_SECONDS) == 1
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize(
    ("number", "sentence"),
    [
        (signal.SIGSTOP, r"given no sign for \d+ s, which is longer than job.batch_timeout"),
        (signal.SIGKILL, "Spark's JVM has ended"),
    ],
)
def test_a_service_whose_jvm_stands_still_or_dies_ends_with_the_reason(
    tmp_path: Path, number: signal.Signals, sentence: str
) -> None:
    process, _, log, port = start_serve(tmp_path, batch_timeout="30s")
    try:
        wait_for(lambda: (scrape(MetricsPlace(port)) or Figures()).up, process, log, START_LIMIT_SECONDS)
        os.kill(jvm_of(process), number)

        assert process.wait(LIMIT_SECONDS) == 1
        text = log.read_text()
        assert re.search(sentence, text.splitlines()[-1]), text
        require_free(port)
    finally:
        process.kill()
        process.wait()


def jvm_of(process: subprocess.Popen[bytes]) -> int:
    """Return the process of Spark; the broker of the service is another child in Java."""
    lines = subprocess.run(
        ["ps", "-ww", "-o", "pid=,args=", "--ppid", str(process.pid)], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    (found,) = [line.split(None, 1)[0] for line in lines if "SparkSubmit" in line]
    return int(found)


def test_the_demo_shows_crossings_and_ends_by_itself(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "bmq.cli", "demo", "vehicles", "--rate", "2000", "--seconds", "20"]
    run = subprocess.run(
        command,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=500,
        env=ENVIRONMENT | {"TMPDIR": str(tmp_path)},
    )

    assert (run.returncode, run.stderr) == (0, "")
    total = re.search(r"([\d,]+) readings and ([\d,]+) events", run.stdout)
    assert total is not None
    assert int(total[1].replace(",", "")) > 0
    assert int(total[2].replace(",", "")) > 0
    assert re.search(r"v\d+ (entered|left) (garage|shop)-\d+ at x=", run.stdout)
    wait_until(lambda: not list(tmp_path.iterdir()), f"the end of {list(tmp_path.iterdir())}")
