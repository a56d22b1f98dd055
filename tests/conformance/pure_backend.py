"""Scenarios against the pure monitor: the same bytes as through Kafka, without Kafka and Spark."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

from bmq.config import load_config
from bmq.conformance.play import ControlRecord, Seen
from bmq.conformance.scenario import BASE_MS, Scenario, all_feeds, with_topic
from tests.conformance.service import write_config
from tests.pure_service import PureService

# Of every record: years after the seconds of scenarios, as through Kafka, where it is the time of the run.
RECORD_TIME = BASE_MS + 100_000_000_000


class PureBackend:
    """One service in this process, with the feeds of all scenarios."""

    def __init__(self, scenarios: Sequence[Scenario]) -> None:
        feeds = all_feeds(scenarios)
        with tempfile.TemporaryDirectory() as folder:
            config, self._served = write_config(Path(folder), "pure", "localhost:9092", feeds)
            self._service = PureService(load_config(config).feed_records(), record_time=RECORD_TIME)
        self._commands: list[ControlRecord] = []
        self._values: dict[str, list[bytes]] = {}

    def restart(self, how: str) -> None:
        """Go on from the log of deltas ("kill") or from a snapshot ("stop")."""
        if how == "kill":
            self._service.restart_from_deltas()
        else:
            self._service.restart_from_snapshot()

    def command(self, records: Sequence[ControlRecord]) -> list[int]:
        """Keep control records for the next batch; return their offsets. Nothing has a topic of its own here."""
        first = self._service.next_offset + len(self._commands)
        self._commands += [(query_id, with_topic(value, lambda _: None)) for query_id, value in records]
        return list(range(first, first + len(records)))

    def publish(self, feed: str, values: Sequence[bytes]) -> None:
        """Keep record values for the next batch; those of a feed that is not served reach nobody."""
        if feed in self._served:
            self._values.setdefault(feed, []).extend(values)

    def settle(self) -> Seen:
        """Run the batch; return what it wrote."""
        service = self._service
        service.run_batch(self._commands, self._values)
        self._commands, self._values = [], {}
        seen = Seen(service.replies, service.events, [_without_run(letter) for letter in service.dead])
        service.replies, service.events, service.dead = [], [], []
        return seen


def _without_run(letter: tuple[str, str]) -> tuple[str, str]:
    topic, code = letter
    return topic.removeprefix("pure-"), code
