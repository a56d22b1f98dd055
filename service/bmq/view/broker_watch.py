"""Watches whether Kafka answers.

The readers of topics do not say so: the Kafka client connects again by itself, and a topic without new records looks
the same as one that nobody can read.
"""

import threading
from collections.abc import Callable

from confluent_kafka import KafkaException

from bmq.errors import ServiceError
from bmq.kafka_io.connect import Options, admin_client, explained

INTERVAL_SECONDS = 2.0
ANSWER_SECONDS = 5.0
NAME = "Kafka"


class BrokerWatch:
    """A thread that asks the broker every few seconds.

    Parameters
    ----------
    note : is called with NAME and why there is no answer, or None if there is one.
    answer_seconds : how long an answer may take.
    """

    def __init__(
        self, options: Options, note: Callable[[str, str | None], None], answer_seconds: float = ANSWER_SECONDS
    ) -> None:
        self._answer_seconds = answer_seconds
        self._options = options
        self._note = note
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="view-broker", daemon=True)

    def start(self) -> None:
        """Start to ask."""
        self._thread.start()

    def stop(self) -> None:
        """Stop to ask."""
        self._ending.set()
        self._thread.join(self._answer_seconds)

    def _run(self) -> None:
        try:
            client = admin_client(self._options)
        except ServiceError as error:
            self._note(NAME, str(error))
            return
        while not self._ending.is_set():
            try:
                with explained(self._options):
                    client.describe_cluster(request_timeout=self._answer_seconds).result()
            except (ServiceError, KafkaException) as error:
                self._note(NAME, f"No news since then: {error}")
            else:
                self._note(NAME, None)
            self._ending.wait(INTERVAL_SECONDS)
