"""`bmq checkpoint rescale` and `upgrade`: a new checkpoint with the content of an old one.

1. The old checkpoint must be at rest: its last planned batch is committed.
2. Read the old state shard by shard, and write the pages of the new shards, with what an upgrade adds, to temporary
   files.
3. Write the first batch of the new checkpoint: the state, and the offsets where the old one ended.
4. The old checkpoint must not have gone on meanwhile.
5. Write `bmq.json` of the new checkpoint last. Without it no service starts on the folder.

A failure removes the new folder. Nothing writes to the old one.
"""

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec
from pyspark.sql import SparkSession

from bmq.errors import ConfigError, StateError
from bmq.job.checkpoint import CheckpointFolder, Origin, new_delivery_id
from bmq.job.replicas import Head
from bmq.job.seeding import NextOffsets, SeedProcessor, write_seed
from bmq.job.session import temporary_folder
from bmq.job.shards import shard_keys
from bmq.job.stored_state import StoredCheckpoint, address_of
from bmq.job.upgrade import Upgrade
from bmq.monitor.monitor import Monitor
from bmq.monitor.rescale import rescale
from bmq.monitor.widening import widen
from bmq.records import Delta
from bmq.wire.state_bytes import pack_delta


def must_be_free(new: Path) -> None:
    """Raise ConfigError if the folder of the new checkpoint is there."""
    if new.exists():
        raise ConfigError(f"{new} is there already. Name a folder that does not exist.")


def must_be_at_rest(old: StoredCheckpoint) -> None:
    """Raise StateError unless the last planned batch of the old checkpoint is committed.

    Such a batch may have written its events. The new checkpoint has other transactional ids, so it could not find out,
    and would write them again.
    """
    if old.planned > old.batch:
        raise StateError(
            f"Checkpoint {old.folder} has begun batch {old.planned} and not ended it: its service runs, or was "
            'interrupted. Stop the service, run it once with job.trigger = "available_now", which ends by itself after '
            "whole batches, and try again."
        )


def write_rescaled(
    spark: SparkSession, old: StoredCheckpoint, new: Path, n_shards: int, upgrade: Upgrade | None = None
) -> Origin:
    """Write the new checkpoint; return its origin. The numbers are those of the module's docstring.

    Parameters
    ----------
    upgrade : None: the feeds stay as they are.

    Raises
    ------
    ConfigError : the new folder is there.
    StateError : the old checkpoint is not at rest, or cannot be read.
    """
    upgrade = upgrade or Upgrade(old.origin.feeds, {})
    must_be_free(new)
    must_be_at_rest(old)  # 1
    try:
        with tempfile.TemporaryDirectory(prefix="pages-", dir=temporary_folder()) as temporary:
            pages = Path(temporary)
            next_offsets = _write_pages(spark, old, pages, n_shards, upgrade.n_new)  # 2
            processor = SeedProcessor(shard_keys(n_shards), pages, next_offsets)
            write_seed(spark, address_of(new), old.documents(), processor)  # 3
        now = StoredCheckpoint(old.folder)
        if (now.batch, now.planned) != (old.batch, old.planned):  # 4
            raise StateError(f"Checkpoint {old.folder} has gone on meanwhile. Stop its service, and try again.")
        origin = msgspec.structs.replace(
            old.origin, shards=n_shards, feeds=upgrade.feeds, delivery_id=new_delivery_id()
        )
        CheckpointFolder(spark, address_of(new)).write(origin)  # 5
    except BaseException:
        shutil.rmtree(new, ignore_errors=True)
        raise
    return origin


def _write_pages(
    spark: SparkSession, old: StoredCheckpoint, folder: Path, n_shards: int, n_new: Mapping[str, int]
) -> NextOffsets:
    """Write the pages of each new shard to files; return the offsets that the old shards have reached."""
    heads: list[Head] = []
    n_pages = [0] * n_shards
    for shard in range(n_shards):
        (folder / str(shard)).mkdir()
    shards = old.shards(spark)
    snapshots = [_snapshot_of_next(shards, heads) for _ in range(old.origin.shards)]
    for shard, page in rescale(snapshots, n_shards):
        (folder / str(shard) / str(n_pages[shard])).write_bytes(pack_delta(widen(page, n_new)))
        n_pages[shard] += 1
    if any(head.next_offsets != heads[0].next_offsets for head in heads):
        raise StateError(f"the shards of checkpoint {old.folder} have read different offsets: the state is damaged.")
    return heads[0].next_offsets


def _snapshot_of_next(shards: Iterator[tuple[Head, Monitor]], heads: list[Head]) -> Iterator[Delta]:
    """Yield the snapshot of the next old shard, which is in memory from the first page to the last."""
    head, monitor = next(shards)
    heads.append(head)
    yield from monitor.snapshot()
