"""Writes a workload to Kafka: readings to four partitions, definitions to a control topic."""

import json
from itertools import islice

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from bench.workload import Workload, stream_id
from bmq.kafka_io.topics import Topics

N_PARTITIONS = 4


def fill_readings(
    bootstrap: str, topic: str, workload: Workload, first_round: int = 0, n_streams: int | None = None
) -> None:
    """Write every reading, a vehicle always to the same partition; make the topic of the plain job too.

    Parameters
    ----------
    first_round : rounds before this one are left out.
    n_streams : only the readings of the first streams; None: of all.
    """
    Topics({"bootstrap.servers": bootstrap}).create_missing(f"{topic}.control", [topic, f"{topic}.plain"], N_PARTITIONS)
    producer = _producer(bootstrap)
    ids = [stream_id(number) for number in range(workload.n_streams)]
    for event_time, xs, ys in islice(workload.rounds(), first_round, None):
        for number, (x, y) in enumerate(zip(xs[:n_streams].tolist(), ys[:n_streams].tolist(), strict=True)):
            value = f'{{"id":"{ids[number]}","ts":{event_time},"x":{x},"y":{y}}}'
            producer.produce(topic, value, ids[number], number % N_PARTITIONS)
        producer.flush()


def fill_queries(bootstrap: str, control_topic: str, workload: Workload) -> None:
    """Write every definition."""
    Topics({"bootstrap.servers": bootstrap}).create_missing(control_topic, [])
    producer = _producer(bootstrap)
    for query_id, definition in workload.definitions():
        producer.produce(control_topic, json.dumps(definition), query_id)
    producer.flush()


def delete_topic(bootstrap: str, topic: str) -> None:
    """Delete the events of a run that was checked: all runs together would fill the disk."""
    client = AdminClient({"bootstrap.servers": bootstrap, "log_level": 4})  # it must outlive the answer
    client.delete_topics([topic])[topic].result()


def _producer(bootstrap: str) -> Producer:
    return Producer(
        {
            "bootstrap.servers": bootstrap,
            "linger.ms": 50,
            "batch.size": 1_000_000,
            # All of one round, so that produce() never has to wait.
            "queue.buffering.max.messages": 1_000_000,
            "queue.buffering.max.kbytes": 1_000_000,
        }
    )
