"""How much later the events of others arrive while one tenant does what costs most.

    python -m tests.abuse
    python -m tests.abuse --only "a join of 1,500 by 1,500 streams"

A real broker and service. The others send 1,000 readings/s, and each of these has an event. Each abuse begins when the
one before is over and its replies are there. The delay of a round of readings is that of its last event.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Producer

from bmq.broker.broker import Broker
from bmq.kafka_io.topic_reader import Start, TopicReader
from bmq.kafka_io.topics import Topics
from tests.abuse.abuses import FEEDS, Record, abuses
from tests.abuse.others import DEFINITION, QUERY_ID, Delays, Others
from tests.conformance.service import Service, topic_names, write_config

RUN = "abuse"
OWN_TOPIC = f"{RUN}-own"
MOST_SECONDS = 2.0  # later than without an abuse
QUIET_SECONDS = 10.0  # before the first abuse, for comparison
AFTER_SECONDS = 3.0  # after the last reply
REPLY_LIMIT_SECONDS = 900.0


@dataclass(frozen=True)
class Measured:
    """The delays of others during one abuse."""

    name: str
    codes: list[str]  # of the replies, each once
    delays: Delays
    seconds: float  # until the last reply, or until all was sent


class World:
    """A broker, a service and the others."""

    def __init__(self, folder: Path) -> None:
        self.broker = Broker(folder / "kafka")
        self.broker.start()
        servers = self.broker.bootstrap_servers
        config, _ = write_config(folder, RUN, servers, FEEDS)
        names = topic_names(RUN)
        topics = Topics({"bootstrap.servers": servers})
        topics.create_missing(names["control"], [*(f"{RUN}-{feed}" for feed in FEEDS), OWN_TOPIC, names["replies"]], 1)
        self.service = Service(config)
        self._replies = TopicReader({"bootstrap.servers": servers}, names["replies"], Start.BEGINNING)
        self._producer = Producer({"bootstrap.servers": servers, "queue.buffering.max.messages": 1_000_000})
        self.others = Others(servers, f"{RUN}-line", OWN_TOPIC)
        self.codes: list[str] = []  # of the replies that came last

    def close(self) -> None:
        """End what was started."""
        self.others.stop()
        self._replies.close()
        self.service.kill()
        self.broker.stop()

    def send(self, records: Iterable[Record]) -> float:
        """Send records; return the seconds until all commands among them are answered."""
        begin, n_commands = time.monotonic(), 0
        for topic, key, value in records:
            n_commands += topic == "control"
            self._producer.produce(topic_names(RUN)["control"] if topic == "control" else f"{RUN}-{topic}", value, key)
            self._producer.poll(0)
        assert self._producer.flush(60) == 0
        self.codes = []
        deadline = time.monotonic() + REPLY_LIMIT_SECONDS
        while len(self.codes) < n_commands:
            assert self.service.runs(), "the service has stopped"
            if time.monotonic() > deadline:
                raise TimeoutError(f"{len(self.codes)} of {n_commands} replies within {REPLY_LIMIT_SECONDS:.0f} s")
            for message in self._replies.follow(time.monotonic() + 0.5):
                reply = json.loads(message.value() or b"")
                self.codes.append(reply["error"]["code"] if "error" in reply else reply["status"])
        return time.monotonic() - begin


def run(folder: Path, only: Sequence[str] = (), *, is_short: bool = False) -> tuple[Delays, list[Measured]]:
    """Return the delays without an abuse, and those with each."""
    world = World(folder)
    measured = []
    try:
        world.send([("control", QUERY_ID.encode(), json.dumps(DEFINITION | {"output_topic": OWN_TOPIC}).encode())])
        world.others.start()
        time.sleep(QUIET_SECONDS)
        begin = _now()
        time.sleep(QUIET_SECONDS)
        quiet = world.others.delays(begin, _now())
        for abuse in abuses(is_short=is_short):
            if only and abuse.name not in only:
                continue
            world.send(abuse.before())
            world.others.wait(0, _now())  # what came before is done
            begin = _now()
            seconds = world.send(abuse.records())
            time.sleep(AFTER_SECONDS)
            delays = world.others.delays(begin, _now())
            codes = sorted(set(world.codes))
            measured.append(Measured(abuse.name, codes, delays, seconds))
            late = f"p99 {delays.p99:.0f} ms, at most {delays.most:.0f} ms"
            print(f"{abuse.name}: {late}; {seconds:.1f} s; {', '.join(codes)}", flush=True)
    finally:
        world.close()
    return quiet, measured


def _now() -> int:
    return time.time_ns() // 1_000_000


def main() -> int:
    """Run all; return 1 if an abuse delays the others too much."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--short", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        quiet, measured = run(Path(folder), arguments.only, is_short=arguments.short)
    print(f"without an abuse: p99 {quiet.p99:.0f} ms, at most {quiet.most:.0f} ms")
    slow = [one for one in measured if one.delays.most - quiet.most > 1000 * MOST_SECONDS]
    for one in slow:
        print(f"{one.name} delays the others by more than {MOST_SECONDS:.0f} s")
    return 1 if slow else 0


if __name__ == "__main__":
    raise SystemExit(main())
