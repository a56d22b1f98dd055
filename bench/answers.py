"""The events of some streams, as the service wrote them and as the definition says."""

import json
from collections import defaultdict

from confluent_kafka import Consumer, TopicPartition

from bench.workload import Workload, stream_id
from tests.oracle import Oracle, Reading

# The oracle asks every query about every reading, in plain Python: this many questions take some seconds.
QUESTIONS = 16_000_000

# (sign, query id, event time, reason), in the stream's order
Ledger = list[tuple[str, str, int, str]]


def sampled_streams(workload: Workload) -> list[int]:
    """Return stream numbers spread over all, as many as the oracle can be asked about."""
    n = max(2, QUESTIONS // (workload.n_rounds * workload.n_queries))
    return list(range(0, workload.n_streams, max(1, workload.n_streams // n)))[:n]


def expected_by_stream(workload: Workload, streams: list[int]) -> dict[str, Ledger]:
    """Return what the definition says of each stream."""
    oracle = Oracle({"vehicles": ("x", "y")})
    for offset, (query_id, definition) in enumerate(workload.definitions()):
        oracle.put(offset, query_id, definition)
    for event_time, xs, ys in workload.rounds():
        oracle.read("vehicles", [Reading(stream_id(s), event_time, (float(xs[s]), float(ys[s]))) for s in streams])
    ledgers: dict[str, Ledger] = {stream_id(s): [] for s in streams}
    for event in oracle.events:
        ledgers[event.stream].append((event.sign, event.query_id, event.event_time, event.reason))
    return ledgers


def events_by_stream(bootstrap: str, topic: str, streams: list[int]) -> tuple[dict[str, Ledger], int]:
    """Return what the topic says of each stream, and how many events it has in all."""
    ledgers: dict[str, Ledger] = {stream_id(s): [] for s in streams}
    wanted = {stream.encode() for stream in ledgers}
    n_events = 0
    for key, value in _records(bootstrap, topic):
        n_events += 1
        if key in wanted:
            event = json.loads(value)
            ledgers[key.decode()].append((event["sign"], event["query_id"], event["event_time"], event["reason"]))
    return ledgers, n_events


def _records(bootstrap: str, topic: str) -> list[tuple[bytes, bytes]]:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "bench",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
        }
    )
    partitions = consumer.list_topics(topic, timeout=10).topics[topic].partitions
    left: dict[int, int] = defaultdict(int)
    for partition in partitions:
        begin, end = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=10)
        if end > begin:
            left[partition] = end
    consumer.assign([TopicPartition(topic, partition, 0) for partition in left])
    records = []
    while left:
        for message in consumer.consume(10_000, timeout=10):
            if message.error():
                raise RuntimeError(str(message.error()))
            records.append((message.key() or b"", message.value() or b""))
            partition, offset = message.partition() or 0, message.offset() or 0
            if offset + 1 >= left.get(partition, 0):
                left.pop(partition, None)
    consumer.close()
    return records
