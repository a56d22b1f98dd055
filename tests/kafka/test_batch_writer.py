"""`bmq.kafka_io.batch_writer` and `writer_process`: each batch once, whatever runs again, moves or dies in between."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest
from confluent_kafka import TopicPartition

from bmq.broker.broker import Broker
from bmq.broker.ports import free_ports
from bmq.errors import SetupError, StateError
from bmq.kafka_io import connect
from bmq.kafka_io.batch_writer import MARK_SECONDS, NO_BATCH, BatchRun, LooseWriter, MarkedWriter, Marks
from bmq.kafka_io.sender import Fenced, Messages
from bmq.kafka_io.topics import Topics
from bmq.kafka_io.writer_process import Place, RemoteWriter, start
from bmq.wire.outgoing import header_column, message_batch
from tests.brokers import kill, pid_of, runs, wait_until
from tests.kafka_records import read_all

LIMIT_SECONDS = 20
DIGEST = "0123456789abcdef"


def run_of(batch: int, marked: int, *, has_messages: bool = True, digest: str = DIGEST) -> BatchRun:
    return BatchRun(batch, marked, has_messages, digest)


class World:
    """A topic to write to, and writers of one shard."""

    def __init__(self, servers: str, topics: Callable[..., str]) -> None:
        self.servers = servers
        self.events = topics("events", partitions=2)
        self.marks = Marks(f"{self.events}-0", topics("marks"))
        self.options = {"bootstrap.servers": servers}

    def writer(self) -> MarkedWriter:
        """Another writer of the same shard, as in another process."""
        return MarkedWriter(self.options, self.marks)

    def messages(self, *values: str, topic: str | None = None) -> pa.RecordBatch:
        n = len(values)
        texts = pa.array(values)
        headers = header_column(n, ("event_id", "kind"), texts, "border")
        return message_batch(pa.array([topic or self.events] * n), pa.array(["k"] * n), texts, headers)

    def run(self, writer: MarkedWriter | RemoteWriter, batch: int, marked: int, *values: str) -> int:
        """Run a batch; return the last marked batch after it."""
        after = writer.begin(run_of(batch, marked, has_messages=bool(values)))
        writer.write([self.messages(*values)] if values else [])
        return after

    def mark(self) -> int:
        """The mark that a reader of committed offsets finds; negative: none."""
        return self.committed().offset

    def committed(self) -> TopicPartition:
        """The mark with its metadata."""
        reader = connect.consumer(self.options | {"group.id": self.marks.group})
        try:
            (found,) = reader.committed([self.marks.at(0)], timeout=LIMIT_SECONDS)
        finally:
            reader.close()
        return found

    def written(self) -> list[str]:
        return [record.value.decode() for record in read_all(self.servers, self.events)]


@pytest.fixture
def world(bootstrap_servers: str, topics: Callable[..., str]) -> World:
    return World(bootstrap_servers, topics)


def test_a_batch_that_runs_again_is_written_once(world: World) -> None:
    writer = world.writer()
    assert world.run(writer, 0, NO_BATCH, "a") == 0
    assert world.run(writer, 1, 0, "b", "c") == 1

    assert world.run(writer, 1, 0, "b", "c") == 1  # a task that runs again
    assert world.run(world.writer(), 1, 0, "b", "c") == 1  # a new start from the checkpoint
    assert world.written() == ["a", "b", "c"]


def test_keys_values_and_headers_arrive_as_they_are(world: World) -> None:
    null = pa.array([None], pa.string())
    headers = pa.array([[]], pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])))
    writer = world.writer()
    writer.begin(run_of(0, NO_BATCH))
    writer.write([world.messages("a"), message_batch(pa.array([world.events]), pa.array(["m"]), null, headers)])

    records = {record.key: record for record in read_all(world.servers, world.events)}
    assert records[b"k"].headers == [("event_id", b"a"), ("kind", b"border")]
    assert (records[b"m"].value, records[b"m"].headers) == (None, [])


def test_a_batch_without_messages_needs_no_mark(world: World) -> None:
    writer = world.writer()
    marked = world.run(writer, 0, NO_BATCH, "a")
    for batch in (1, 2, 3):
        marked = world.run(writer, batch, marked)
    assert marked == 0
    assert world.run(world.writer(), 4, marked, "b") == 4
    assert world.written() == ["a", "b"]


def test_a_transaction_that_was_left_open_never_counts(world: World) -> None:
    writer = world.writer()
    marked = world.run(writer, 0, NO_BATCH, "a")

    def dies_in_the_middle() -> Iterator[pa.RecordBatch]:
        yield world.messages("half")
        raise EOFError

    writer.begin(run_of(1, marked))
    with pytest.raises(EOFError):
        writer.write(dies_in_the_middle())
    assert world.run(writer, 1, marked, "whole") == 1
    assert world.written() == ["a", "whole"]


def test_a_writer_that_another_one_replaced_cannot_commit(world: World) -> None:
    zombie = world.writer()
    marked = world.run(zombie, 0, NO_BATCH, "a")
    zombie.begin(run_of(1, marked))

    assert world.run(world.writer(), 1, marked, "new") == 1

    with pytest.raises(Fenced, match="Another service, or a newer task"):
        zombie.write([world.messages("old")])
    assert world.run(zombie, 1, marked, "old") == 1  # the mark says that the batch is written
    assert world.written() == ["a", "new"]


def test_a_shard_may_move_from_writer_to_writer(world: World) -> None:
    here, there = world.writer(), world.writer()
    marked = NO_BATCH
    for batch, writer in enumerate([here, there, here, here, there]):
        marked = world.run(writer, batch, marked, str(batch))
    assert world.written() == ["0", "1", "2", "3", "4"]


def test_a_lost_mark_is_an_error_and_no_second_copy(world: World) -> None:
    elsewhere = MarkedWriter(world.options, Marks(f"{world.events}-forgotten", world.marks.topic))
    with pytest.raises(StateError, match=r"is gone, and the state expects 8\. .*at_least_once"):
        elsewhere.begin(run_of(8, 7))


def test_a_copy_of_a_checkpoint_that_is_behind_is_an_error(world: World) -> None:
    writer = world.writer()
    marked = world.run(writer, 0, NO_BATCH, "a")
    for batch in (1, 2):
        marked = world.run(writer, batch, marked, "b")
    with pytest.raises(StateError, match="is 3, but this checkpoint is at batch 1"):
        world.writer().begin(run_of(1, 0))


def test_another_batch_of_the_same_number_is_an_error(world: World) -> None:
    assert world.run(world.writer(), 0, NO_BATCH, "a") == 0
    for _ in range(2):  # also after a restart, for which it is a batch that runs again
        with pytest.raises(StateError, match=r"An earlier run wrote batch 0 .* other records.* until batch 0 is over"):
            world.writer().begin(run_of(0, NO_BATCH, digest="others"))

    again = world.writer()
    assert world.run(again, 0, NO_BATCH, "a") == 0
    assert world.run(again, 1, 0, "b") == 1
    with pytest.raises(StateError, match="other records"):  # also where the mark is remembered
        again.begin(run_of(1, 0, digest="others"))
    assert world.written() == ["a", "b"]


def test_a_mark_has_the_whole_digest_and_nothing_else(world: World) -> None:
    world.run(world.writer(), 0, NO_BATCH, "a")

    assert (world.committed().offset, world.committed().metadata) == (1, DIGEST)


def test_a_mark_of_a_version_without_digests_counts(world: World) -> None:
    writer = world.writer()
    writer.begin(run_of(0, NO_BATCH, digest=""))
    writer.write([world.messages("a")])

    assert world.run(world.writer(), 0, NO_BATCH, "a") == 0
    assert world.written() == ["a"]


def test_after_at_least_once_the_old_mark_is_taken_up(world: World) -> None:
    world.run(world.writer(), 0, NO_BATCH, "a")
    loose = LooseWriter(world.options)
    marked = loose.begin(run_of(1, 0))
    loose.write([world.messages("b")])
    assert world.run(world.writer(), 2, marked, "c") == 2
    assert world.written() == ["a", "b", "c"]


@pytest.mark.parametrize("is_marked", [True, False])
def test_a_message_that_the_broker_refuses_is_an_error_with_its_topic(
    world: World, topics: Callable[..., str], is_marked: bool
) -> None:
    small = topics("small", config={"max.message.bytes": "1000"})
    writer = world.writer() if is_marked else LooseWriter(world.options)
    writer.begin(run_of(0, NO_BATCH))
    with pytest.raises(SetupError, match=f"did not take a message for topic '{small}': .*too large"):
        writer.write([world.messages("x" * 5_000, topic=small)])
    assert world.written() == []


def test_after_a_failure_the_loose_writer_writes_again(world: World) -> None:
    writer = LooseWriter(world.options | {"topic.metadata.propagation.max.ms": "1"})
    with pytest.raises(SetupError, match="did not take a message for topic 'nobody-made-this-topic'"):
        writer.write([world.messages("a", topic="nobody-made-this-topic")])
    writer.write([world.messages("b")])
    assert world.written() == ["b"]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker that a test may kill or stop for a while."""
    (port,) = free_ports(1)
    with Broker(tmp_path_factory.mktemp("broker"), port) as broker:
        yield broker


def world_of(broker: Broker, name: str) -> World:
    def made(role: str, partitions: int = 1) -> str:
        Topics({"bootstrap.servers": broker.bootstrap_servers}).create_missing(
            f"{name}-control", [f"{name}-{role}"], partitions
        )
        return f"{name}-{role}"

    return World(broker.bootstrap_servers, made)


def test_a_writer_that_was_replaced_while_the_broker_paused_cannot_commit(broker: Broker) -> None:
    world = world_of(broker, "paused")
    zombie = world.writer()
    marked = world.run(zombie, 0, NO_BATCH, "a")
    zombie.begin(run_of(1, marked))
    assert world.run(world.writer(), 1, marked, "new") == 1

    os.kill(pid_of(broker), signal.SIGSTOP)
    # Longer than the zombie waits for its mark, so it opens the id anew when the broker goes on.
    again = threading.Timer(MARK_SECONDS * 2, lambda: os.kill(pid_of(broker), signal.SIGCONT))
    again.start()
    with pytest.raises(Fenced, match="was written elsewhere"):
        zombie.write([world.messages("old")])
    again.join()
    assert world.run(zombie, 1, marked, "old") == 1
    assert world.written() == ["a", "new"]


def test_a_broker_that_was_killed_between_two_batches_is_waited_for(broker: Broker) -> None:
    world = world_of(broker, "killed")
    writer = world.writer()
    marked = world.run(writer, 0, NO_BATCH, "a")
    # A broker that coordinates a transaction and has its only replica, too, may skip its end when it starts again: it
    # does not know its own partitions yet (seen in three of five kills right behind a commit).
    wait_until(lambda: world.mark() == 1 and world.written() == ["a"], "the end of the transaction")
    kill(broker)
    # A client that asks while it starts hears of no broker at all, and forgets the one that it knew.
    broker.start()
    assert world.run(writer, 1, marked, "b") == 1
    assert world.written() == ["a", "b"]


# -- the process --------------------------------------------------------------------------------------


def remote(world: World, owner: int, run_id: str = "run") -> RemoteWriter:
    return RemoteWriter(owner, Place(run_id, 0, world.options, world.marks))


def child_of(owner: int) -> int:
    """The writer process of an owner."""
    found = subprocess.run(
        ["pgrep", "-f", f"writer_process .*writer-{owner} "], capture_output=True, text=True, check=True
    )
    (pid,) = found.stdout.split()
    return int(pid)


def test_workers_share_the_writers_of_one_process(world: World, owner: int) -> None:
    marked = NO_BATCH
    for batch in range(3):
        writer = remote(world, owner)
        marked = world.run(writer, batch, marked, str(batch))
        writer.close()
    assert world.written() == ["0", "1", "2"]


def test_a_process_that_starts_early_is_the_one_that_workers_find(world: World, owner: int) -> None:
    for _ in range(3):
        start(owner)
    child = child_of(owner)
    world.run(remote(world, owner), 0, NO_BATCH, "a")
    start(owner)
    assert child_of(owner) == child


def test_a_worker_that_dies_in_the_middle_leaves_nothing(world: World, owner: int) -> None:
    def dies() -> Messages:
        yield world.messages("half")
        raise ZeroDivisionError

    worker = remote(world, owner)
    worker.begin(run_of(0, NO_BATCH))
    with pytest.raises(ZeroDivisionError):
        worker.write(dies())
    worker.close()

    assert world.run(remote(world, owner), 0, NO_BATCH, "whole") == 0
    assert world.written() == ["whole"]


def test_errors_of_the_writer_reach_the_worker(world: World, owner: int) -> None:
    with pytest.raises(StateError, match="the state expects 8"):
        remote(world, owner).begin(run_of(8, 7))


def test_a_writer_process_that_was_killed_is_replaced(world: World, owner: int) -> None:
    worker = remote(world, owner)
    marked = world.run(worker, 0, NO_BATCH, "a")
    worker.begin(run_of(1, marked))
    os.kill(child_of(owner), signal.SIGKILL)
    with pytest.raises(SetupError, match="has ended"):
        worker.write([world.messages("lost")])

    assert world.run(remote(world, owner), 1, marked, "b") == 1
    assert world.written() == ["a", "b"]


ORPHAN = """
import os, sys, time
from bmq.errors import SetupError
from bmq import owned_process

owned_process.own_workers()
has_seen, sees = os.pipe()
if os.fork():
    os.read(has_seen, 1)  # the child sees its parent first
    os._exit(0)
print(owned_process.owner_of_worker() == os.getppid())
os.write(sees, b".")
while os.getppid() == owned_process.owner_of_worker():
    time.sleep(0.05)
"""


def test_a_worker_whose_daemon_has_ended_starts_no_process_of_its_own() -> None:
    run = subprocess.run([sys.executable, "-c", ORPHAN], capture_output=True, text=True, timeout=60)
    assert run.stdout == "True\n"
    assert "OwnerEnded: The process that starts the Python workers has ended" in run.stderr


def test_the_process_ends_with_its_owner(world: World) -> None:
    owner = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    world.run(remote(world, owner.pid), 0, NO_BATCH, "a")
    child = child_of(owner.pid)
    owner.kill()
    owner.wait()
    deadline = time.monotonic() + LIMIT_SECONDS
    while runs(child) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not runs(child)
