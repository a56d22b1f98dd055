"""The service when Kafka has deleted readings that it has not read, on a checkpoint that Spark's own source wrote."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from bmq.kafka_io.topics import Topics
from tests.brokers import delete_before
from tests.conformance.service import Service, ServiceFailed, topic_names, write_config
from tests.kafka_records import read_all

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(600)]

LIMIT_SECONDS = 30.0
FEEDS: dict[str, dict[str, Any]] = {"line": {"dimensions": ["x"], "event_time_unit": "ms"}}
BORDER = json.dumps({"kind": "border", "feed": "line", "region": {"box": {"x": [0, 10]}}})


def forget_topic_ids(checkpoint: Path) -> None:
    """Write the offset log as Spark's own Kafka source would have: it knows no ids."""
    n_changed = 0
    for file in (checkpoint / "offsets").iterdir():
        if file.name.isdecimal():
            old = file.read_text()
            new = re.sub(r', "topic ids": \{[^}]*\}', "", old)
            n_changed += new != old
            file.write_text(new)
            file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
    assert n_changed


def test_lost_readings_stop_the_service_unless_it_is_to_go_on(bootstrap_servers: str, tmp_path: Path) -> None:
    run = tmp_path.name.replace("_", "-")
    line, names = f"{run}-line", topic_names(run)
    Topics({"bootstrap.servers": bootstrap_servers}).create_missing(names["control"], [line], 1)
    producer = Producer({"bootstrap.servers": bootstrap_servers})

    def send(stream: str) -> None:
        producer.produce(line, json.dumps({"id": stream, "ts": 1, "x": 5}))
        assert producer.flush(LIMIT_SECONDS) == 0

    def streams() -> list[str]:
        return [json.loads(record.value)["stream_id"] for record in read_all(bootstrap_servers, names["events"])]

    config, served = write_config(tmp_path, run, bootstrap_servers, FEEDS)
    assert served == FEEDS.keys()
    producer.produce(names["control"], BORDER, "q")
    send("a")
    service = Service(config)
    try:
        service.wait_for({names["control"]: 1, line: 1})
        service.stop()
        forget_topic_ids(tmp_path / "checkpoint")
        send("b")
        service.restart("kill")
        service.wait_for({line: 2})
        service.stop()

        for stream in ("lost", "lost", "c"):
            send(stream)
        delete_before(bootstrap_servers, line, 0, 4)
        service.restart("kill")
        with pytest.raises(ServiceFailed, match="the service ended by itself") as stopped:
            service.wait_for({line: 5})
        last_line = str(stopped.value).splitlines()[-1]
        assert (
            f"Topic '{line}' partition 0: the service expected offset 2, and the first offset there is 4" in last_line
        )
        assert 'Set job.on_data_loss = "continue"' in last_line

        config.write_text(config.read_text().replace("[job]\n", '[job]\non_data_loss = "continue"\n'))
        service.restart("kill")
        service.wait_for({line: 5})
        service.stop()
    finally:
        service.kill()

    assert streams() == ["a", "b", "c"]
    (letter,) = read_all(bootstrap_servers, names["dead_letter"])
    headers = {name: value.decode() for name, value in letter.headers}
    assert (headers["code"], headers["topic"], headers["offset"]) == ("data_loss", line, "2")
    assert "Kafka deleted 2 offsets" in headers["message"]
