"""The faults of a campaign. Each happens to a running stage, and is over when its function returns what it was."""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewPartitions  # type: ignore[attr-defined]  # re-exported unsaid

from tests.brokers import ANSWER_LIMIT_SECONDS, kill, pid_of, wait_until
from tests.campaign.comparison import events_of
from tests.campaign.load import FEED_TOPIC, OWN_TOPIC
from tests.campaign.stage import Stage, numbers_of, stopped
from tests.disks import full

Fault = Callable[[Stage], str]

LONGEST_STOP_SECONDS = 20.0
START_TRIES = 5
TOO_BUSY = "bmq: The machine is too busy"  # a start that did not come as far as the damaged file
LONGEST_ABSENCE_SECONDS = 300.0  # of the broker; after 120 s the service stops
MOST_PARTITIONS = 6
_PARTS = ("service", "jvm", "preloaded", "stand-in", "daemon", "worker", "home", "nursery", "writer")


def kill_a_part(stage: Stage) -> str:
    """Kill one process of the service."""
    part = stage.rng.choice(_PARTS)
    pid = stage.a_process_of(part)
    if pid is None:
        return f"kill {part}: none was there"
    os.kill(pid, signal.SIGKILL)
    return f"kill {part}"


def kill_all(stage: Stage) -> str:
    """Kill the service and all that it started, as a machine that loses power."""
    stage.service.kill()
    return "kill all"


def kill_broker(stage: Stage) -> str:
    """Kill the broker, and start it after some seconds."""
    kill(stage.broker)
    seconds = stage.rng.uniform(0, 3)
    time.sleep(seconds)
    stage.broker.start()
    return f"kill broker for {seconds:.0f} s"


def stop_a_part(stage: Stage) -> str:
    """Hold one process for some seconds, as a machine that swaps."""
    part = stage.rng.choice((*_PARTS, "broker"))
    pid = pid_of(stage.broker) if part == "broker" else stage.a_process_of(part)
    if pid is None:
        return f"hold {part}: none was there"
    seconds = stage.rng.uniform(1, LONGEST_STOP_SECONDS)
    with stopped(pid):
        time.sleep(seconds)
    return f"hold {part} for {seconds:.0f} s"


def lose_broker(stage: Stage) -> str:
    """Stop the broker for seconds, or for so long that the service gives up."""
    seconds = stage.rng.choice((5.0, 20.0, 60.0, LONGEST_ABSENCE_SECONDS))
    stage.broker.stop()
    time.sleep(seconds)
    stage.broker.start()
    return f"no broker for {seconds:.0f} s"


def fill_checkpoint(stage: Stage) -> str:
    """Fill the disk of the checkpoint until the service stops."""
    if "checkpoint" not in stage.disks:
        return "fill checkpoint: no disk of its own"
    with full(stage.disks["checkpoint"]):
        line = stage.wait_for_stop()
    if "A disk is full" not in line:
        raise stage.service.failed("another last line than that of a full disk")
    return "fill checkpoint"


def fill_temporary(stage: Stage) -> str:
    """Fill the disk of the temporary files for some seconds."""
    if "temporary" not in stage.disks:
        return "fill temporary: no disk of its own"
    seconds = stage.rng.uniform(1, LONGEST_STOP_SECONDS)
    with full(stage.disks["temporary"]):
        time.sleep(seconds)
    return f"fill temporary for {seconds:.0f} s"


def fill_broker(stage: Stage) -> str:
    """Fill the disk of the broker until it ends; start it again when there is room."""
    if "kafka" not in stage.disks:
        return "fill broker: no disk of its own"
    with full(stage.disks["kafka"]):
        deadline = time.monotonic() + 60
        while stage.broker.running and time.monotonic() < deadline:
            time.sleep(0.1)
        had_ended = not stage.broker.running
    if had_ended:
        stage.broker.start()
    return f"fill broker: it {'ended' if had_ended else 'lived'}"


def damage_checkpoint(stage: Stage) -> str:
    """Kill the service, damage a file that it needs, see it refuse, and bring the file back."""
    stage.service.kill()
    damaged = stage.rng.choice(_needed_files(stage))
    # Without the last entry of a log, Spark goes on from the one before: it cannot know that there was one.
    how = stage.rng.choice(("empty", "cut") if damaged.name.isdecimal() else ("delete", "empty", "cut"))
    content = damaged.read_bytes()
    damaged.unlink()
    if how != "delete":
        damaged.write_bytes(b"" if how == "empty" else content[: len(content) // 2])
    for _ in range(START_TRIES):
        stage.service.restart("kill")
        line = stage.wait_for_stop()
        if not line.startswith(TOO_BUSY):
            break
    if "missing or damaged" not in line and "bmq.json" not in line:
        raise stage.service.failed(f"{damaged} was damaged ({how}), and the last line names another cause")
    # Not the whole checkpoint from a copy: the refused start may have planned a batch, and a shard may have written its
    # part of it. A copy that does not have this batch is refused, too (test_damaged_checkpoint).
    damaged.write_bytes(content)
    return f"{how} {damaged.relative_to(stage.checkpoint)}"


def delete_own_topic(stage: Stage) -> str:
    """Delete the topic of some queries; or make it again if it is deleted."""
    admin = AdminClient({"bootstrap.servers": stage.broker.bootstrap_servers})
    if OWN_TOPIC not in stage.topics.partitions():
        stage.topics.make([OWN_TOPIC])
        return "make the topic of some queries"
    with stage.load.paused():  # what is in the topic goes with it, so it is read before
        stage.settle()
        stage.kept += events_of(stage.broker.bootstrap_servers, OWN_TOPIC)
        admin.delete_topics([OWN_TOPIC])[OWN_TOPIC].result(ANSWER_LIMIT_SECONDS)
        wait_until(lambda: OWN_TOPIC not in stage.topics.partitions(), "the end of the topic")
    return "delete the topic of some queries"


def add_partition(stage: Stage) -> str:
    """Add a partition to the feed, with streams of its own."""
    n = stage.topics.partitions()[FEED_TOPIC]
    if n >= MOST_PARTITIONS:
        return "add a partition: there are enough"
    admin = AdminClient({"bootstrap.servers": stage.broker.bootstrap_servers})
    admin.create_partitions([NewPartitions(FEED_TOPIC, n + 1)])[FEED_TOPIC].result(ANSWER_LIMIT_SECONDS)
    stage.load.use_partition(n)
    return f"add partition {n}"


def send_wild_records(stage: Stage) -> str:
    """Send records with wild timestamps, keys and contents."""
    for _ in range(20):
        timestamp = stage.rng.choice((1, 2**40, 2**53, 2**62, 9_223_372_036_854_775_807))
        key = stage.rng.choice((None, b"", b"\xff\xfe", b"s0"))
        value = stage.rng.choice((b"", b"\x00", b"[" * 1000, stage.rng.randbytes(900_000), b'{"id":"s0"}'))
        stage.load.send_faulty(key, value, timestamp)
    return "wild records"


def _needed_files(stage: Stage) -> list[Path]:
    """Return files that the next start certainly reads."""
    last = {folder: max(numbers_of(stage.checkpoint / folder)) for folder in ("offsets", "commits")}
    files = [stage.checkpoint / folder / str(number) for folder, number in last.items()]
    return [*files, stage.checkpoint / "metadata", stage.checkpoint / "bmq.json"]


FAULTS: dict[str, Fault] = {
    fault.__name__: fault
    for fault in (
        kill_a_part,
        kill_all,
        kill_broker,
        stop_a_part,
        lose_broker,
        fill_checkpoint,
        fill_temporary,
        fill_broker,
        damage_checkpoint,
        delete_own_topic,
        add_partition,
        send_wild_records,
    )
}
WEIGHTS = {kill_a_part.__name__: 6, stop_a_part.__name__: 4}  # of the others: 1
