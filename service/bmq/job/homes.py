"""The home of a shard: the one process of an executor that holds its replica, and the workers' way to it.

    worker, any batch  ── ShardBatch ──►  home of the shard
    store of the task  ◄── StoreCall ───  run_shard
                       ─── result ─────►
                       ◄── Finished ────

Spark gives a shard now to one Python worker and now to another. If the workers held replicas, each of them would hold
every shard, and apply every delta again. So a worker passes its batch on, and answers for the state store of its task.

A worker that dies closes the connection, and the home drops the replica, as `run_shard` left it. A home that dies takes
the replica with it; the task fails, and the next one finds a new home. Either way the replica is read from the state.
"""

import pickle
import traceback
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Client, Connection
from typing import Any

import msgspec

from bmq.errors import ServiceError, SetupError
from bmq.job.nursery import home_address, nursery_address
from bmq.job.replicas import Store
from bmq.job.shard_task import ShardBatch, run_shard
from bmq.owned_process import START_SECONDS, Door, connect, start_once


class HomeEnded(SetupError):
    """The home of a shard has ended in the middle of a batch."""


class HomeFailed(ServiceError):
    """A batch failed in the home of its shard, by an error that cannot travel; the note has its traceback."""


@dataclass(frozen=True, slots=True)
class StoreCall:
    """A method of `Store` that the home asks the worker to call."""

    method: str
    arguments: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Finished:
    """The end of a batch: its counters, as JSON."""

    counters: str


@dataclass(frozen=True, slots=True)
class Failed:
    """The end of a batch that failed."""

    error: Exception


def run_at_home(batch: ShardBatch, store: Store) -> str:
    """Run one batch of one shard in the home of the shard; return its counters, as JSON.

    Raises
    ------
    HomeEnded : the home has ended meanwhile.
    Exception : what the home or the store raised.
    """
    with _connect(batch.owner, batch.shard) as connection:
        say: object = batch
        while True:
            try:
                connection.send(say)
                message = connection.recv()
            except (EOFError, OSError) as error:
                raise HomeEnded(
                    f"The process of shard {batch.shard} has ended in the middle of a batch; the log above says how. "
                    "Nothing of the batch counts, and it runs again."
                ) from error
            match message:
                case StoreCall(method, arguments):
                    say = getattr(store, method)(*arguments)
                case Finished(counters):
                    return counters
                case Failed(failure):
                    raise failure


def serve_home(door: Door) -> None:
    """Run the batches of a shard, one after the other, until the owner has ended."""
    for connection in door.visits():
        if connection is not None:
            with suppress(EOFError, OSError):
                connection.send(_run(connection.recv(), connection))


def _connect(owner: int, shard: int) -> Connection:
    return connect(home_address(owner, shard), owner, lambda: _have_made(owner, shard), f"process of shard {shard}")


def _have_made(owner: int, shard: int) -> None:
    """Have the nursery make a home; start the nursery if it was killed."""
    nursery = nursery_address(owner)
    try:
        with Client(nursery, "AF_UNIX") as connection:
            connection.send(shard)
            if connection.poll(START_SECONDS):
                connection.recv()
    except (ConnectionError, FileNotFoundError, EOFError):
        start_once("bmq.job.spare_nursery", nursery, owner)


class _WorkersStore:
    """The state store of the task, in the worker at the other end."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def head(self) -> bytes | None:
        found: bytes | None = self._call("head")
        return found

    def set_head(self, head: bytes) -> None:
        self._call("set_head", head)

    def get(self, key: str) -> bytes | None:
        found: bytes | None = self._call("get", key)
        return found

    def put(self, key: str, value: bytes) -> None:
        self._call("put", key, value)

    def remove(self, key: str) -> None:
        self._call("remove", key)

    def _call(self, method: str, *arguments: Any) -> Any:
        try:
            self._connection.send(StoreCall(method, arguments))
            return self._connection.recv()
        except (EOFError, OSError) as error:
            raise _WorkerEnded from error


class _WorkerEnded(Exception):
    """The worker has ended in the middle of its batch."""


def _run(batch: ShardBatch, connection: Connection) -> Finished | Failed:
    try:
        return Finished(msgspec.json.encode(run_shard(batch, _WorkersStore(connection))).decode())
    except Exception as error:
        return Failed(_travelling(error))


def _travelling(error: Exception) -> Exception:
    """Return the error if it can be pickled, otherwise one with its text."""
    text = traceback.format_exc()
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301 - just made here
    except Exception:
        kept: Exception = HomeFailed(f"{type(error).__name__}: {error}")
    else:
        kept = error
    kept.add_note(text)
    return kept
