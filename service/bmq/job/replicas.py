"""A shard's state in the state store, and its replica in the memory of the shard's home.

The store is authoritative. It holds a snapshot and, after it, a chain of entries; each entry is the delta of one batch.

    head ──► version v, token t                  snapshot s, pages 0..p-1
    entry s+1 ◄── entry s+2 ◄── … ◄── entry v    (each holds its own token and its parent's)

A replica is the home's copy of the state at some (version, token). If the head has the same version and token, the
replica is used unchanged. If its token is on the chain, the entries after it are applied. Otherwise the replica is read
anew. Tokens are random. If a task fails after it has advanced its replica, the replica's token is on no chain, so it is
never mistaken for the state, not even if the retry reaches the same version.

Knows the order of reads and writes, but not Spark: `Store` is the part of Spark's state API that this module needs.
"""

import secrets
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields
from typing import Protocol

import msgspec

from bmq.errors import StateError
from bmq.monitor.monitor import Monitor
from bmq.wire.state_bytes import pack_delta, unpack_delta

FORMAT = 5
_READABLE = (4, FORMAT)  # 4 has no `marked`

# A snapshot is due when the log after the last one has this many times the bytes of the snapshot. With 4, snapshots
# are at most a fifth of all bytes written, and a lost replica reads at most five times the live state.
LOG_TO_SNAPSHOT = 4
# Below this many bytes the log is never long enough; otherwise a tiny state would get a snapshot in each batch.
LOG_BYTES_MIN = 4_000_000
# A snapshot is also due after this many entries, because each entry costs a round trip when a replica is read.
LOG_ENTRIES_MAX = 400
# For a large snapshot more entries are allowed, one for this many bytes: 100 MB are worth four thousand round trips.
SNAPSHOT_BYTES_PER_ENTRY = 25_000


class Head(msgspec.Struct, frozen=True, array_like=True):
    """The current version of one shard's state: its place in the chain, the snapshot, and the offsets read so far.

    next_offsets : feed -> partition -> the first offset that is not yet read.
    marked : the last batch whose messages have a mark (`kafka_io.batch_writer`); -1: none, or not known.
    """

    format: int = FORMAT
    version: int = 0
    token: bytes = b""
    snapshot_version: int = 0
    snapshot_pages: int = 0
    snapshot_bytes: int = 0
    log_bytes: int = 0
    next_offsets: dict[str, dict[int, int]] = {}
    marked: int = -1


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """One batch's delta and its place in the chain."""

    parent: bytes
    token: bytes
    delta: bytes


class Store(Protocol):
    """The state of one shard, as bytes."""

    def head(self) -> bytes | None:
        """Return the head; None if the state is new."""

    def set_head(self, head: bytes) -> None:
        """Replace the head."""

    def get(self, key: str) -> bytes | None:
        """Return an entry or page; None if the key is absent."""

    def put(self, key: str, value: bytes) -> None:
        """Write an entry or page."""

    def remove(self, key: str) -> None:
        """Remove an entry or page."""


@dataclass(slots=True)
class Replica:
    """A shard's tables in memory, and the version and token of the state they hold."""

    monitor: Monitor
    version: int = 0
    token: bytes = b""


def read_head(store: Store) -> Head:
    """Return the shard's head; an empty one if the state is new.

    Raises
    ------
    StateError : the state has another format.
    """
    stored = store.head()
    if stored is None:
        return Head()
    found = msgspec.msgpack.decode(stored)[0]
    if found not in _READABLE:
        raise StateError(
            f"The checkpoint holds state of format {found}, and this version reads format {FORMAT}. Run the version "
            "that wrote it, or start with a new checkpoint: the queries come back from the control topic, and every "
            "stream is seen for the first time again."
        )
    return msgspec.structs.replace(msgspec.msgpack.decode(stored, type=Head), format=FORMAT)


def catch_up(
    cached: Replica | None, head: Head, store: Store, new_monitor: Callable[[], Monitor]
) -> tuple[Replica, bool]:
    """Return a replica at the head, and whether it had to be read anew."""
    if cached is not None and _advance(cached, head, store):
        return cached, False
    replica = Replica(new_monitor(), head.version, head.token)
    for page in range(head.snapshot_pages):
        replica.monitor.apply_delta(unpack_delta(_must_get(store, _page_key(head.snapshot_version, page))))
    for entry in _entries(store, head.snapshot_version + 1, head.version):
        replica.monitor.apply_delta(unpack_delta(entry.delta))
    return replica, head.version > 0


def commit(
    replica: Replica, head: Head, store: Store, next_offsets: dict[str, dict[int, int]], marked: int = -1
) -> Head:
    """Write the changes of the replica's monitor, and return the new head; ``marked`` is a field of it.

    1. Unless nothing changed, the log gets longer by the delta.
    2. If a snapshot is due, it replaces the log. Otherwise the delta becomes the next entry. A first batch with a
       million commands would make an entry of hundreds of megabytes, for which Spark's heap has no room. The pages of a
       snapshot are small.
    3. The head refers to what was written. Spark commits all writes together, or none of them.
    """
    delta = replica.monitor.take_delta()
    new = msgspec.structs.replace(replace_offsets(head, next_offsets), marked=marked)
    if any(getattr(delta, part.name) for part in fields(delta)):
        token = secrets.token_bytes(8)
        packed = pack_delta(delta)
        log_bytes = head.log_bytes + len(packed)  # 1
        new = msgspec.structs.replace(new, version=head.version + 1, token=token, log_bytes=log_bytes)
        if _snapshot_is_due(new):  # 2
            new = _write_snapshot(replica.monitor, new, store)
        else:
            store.put(_entry_key(new.version), msgspec.msgpack.encode(Entry(head.token, token, packed)))
    if new != head:
        store.set_head(msgspec.msgpack.encode(new))  # 3
    replica.version, replica.token = new.version, new.token
    return new


def seed(store: Store, pages: Iterable[bytes], next_offsets: dict[str, dict[int, int]]) -> Head:
    """Write the first state of a shard, a snapshot of packed pages, and return the head."""
    n_pages = n_bytes = 0
    for page in pages:
        store.put(_page_key(1, n_pages), page)
        n_pages += 1
        n_bytes += len(page)
    head = Head(
        version=1,
        token=secrets.token_bytes(8),
        snapshot_version=1,
        snapshot_pages=n_pages,
        snapshot_bytes=n_bytes,
        next_offsets=next_offsets,
    )
    store.set_head(msgspec.msgpack.encode(head))
    return head


def replace_offsets(head: Head, next_offsets: dict[str, dict[int, int]]) -> Head:
    """Return the head with the new next offsets of the partitions."""
    merged = {feed: dict(partitions) for feed, partitions in head.next_offsets.items()}
    for feed, partitions in next_offsets.items():
        merged.setdefault(feed, {}).update(partitions)
    return msgspec.structs.replace(head, next_offsets=merged)


def state_bytes(head: Head) -> int:
    """Return the size of the shard's state in bytes."""
    return head.snapshot_bytes + head.log_bytes


def _advance(replica: Replica, head: Head, store: Store) -> bool:
    """Apply the entries after the replica's version; return False if the replica is not on the head's chain."""
    if replica.version == head.version:
        return replica.token == head.token
    if not head.snapshot_version <= replica.version < head.version:
        return False
    entries = _entries(store, replica.version + 1, head.version)
    first = next(entries)
    if first.parent != replica.token:
        return False
    replica.monitor.apply_delta(unpack_delta(first.delta))
    for entry in entries:
        replica.monitor.apply_delta(unpack_delta(entry.delta))
    replica.version, replica.token = head.version, head.token
    return True


def _snapshot_is_due(head: Head) -> bool:
    enough = head.log_bytes >= max(LOG_BYTES_MIN, LOG_TO_SNAPSHOT * head.snapshot_bytes)
    n_entries = head.version - head.snapshot_version
    return enough or n_entries >= max(LOG_ENTRIES_MAX, head.snapshot_bytes // SNAPSHOT_BYTES_PER_ENTRY)


def _write_snapshot(monitor: Monitor, head: Head, store: Store) -> Head:
    """Write a snapshot of the head's version, which has no entry, and remove the log; return the new head."""
    n_pages = 0
    n_bytes = 0
    for page in monitor.snapshot():
        packed = pack_delta(page)
        store.put(_page_key(head.version, n_pages), packed)
        n_pages += 1
        n_bytes += len(packed)
    for page_number in range(head.snapshot_pages):
        store.remove(_page_key(head.snapshot_version, page_number))
    for version in range(head.snapshot_version + 1, head.version):
        store.remove(_entry_key(version))
    return msgspec.structs.replace(
        head, snapshot_version=head.version, snapshot_pages=n_pages, snapshot_bytes=n_bytes, log_bytes=0
    )


def _entries(store: Store, first: int, last: int) -> Iterator[Entry]:
    return (_entry(store, version) for version in range(first, last + 1))


def _entry(store: Store, version: int) -> Entry:
    return msgspec.msgpack.decode(_must_get(store, _entry_key(version)), type=Entry)


def _must_get(store: Store, key: str) -> bytes:
    value = store.get(key)
    if value is None:
        raise StateError(
            f"The checkpoint's state lacks {key!r}, which its head names: the state is damaged. Restore the checkpoint "
            "from a copy, or start with a new one: the queries come back from the control topic."
        )
    return value


def _entry_key(version: int) -> str:
    return f"entry/{version}"


def _page_key(version: int, page: int) -> str:
    return f"snapshot/{version}/{page}"
