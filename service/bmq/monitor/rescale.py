"""The state of some shards as the state of another number of shards.

    snapshots of the old shards ─┬─ queries, clocks, joins: those of the first shard ──► every new shard
                                 ├─ streams, trackings, silent members, held readings ─► the new shard of the stream
                                 └─ numbers of recounted readings: the largest ────────► every new shard

Pages in, pages out: the module knows what a shard keeps, and not where snapshots come from or go to.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from bmq.errors import StateError
from bmq.index.text_ids import ids_of_texts
from bmq.kernels.tables.hashing import shards_of
from bmq.records import Clock, Delete, Delta, Ids, Put, Query, Readings, StreamRows, TrackingRows
from bmq.records.attribute_texts import with_used_texts
from bmq.records.column_records import take

Rows = TypeVar("Rows", StreamRows, TrackingRows, Readings)
Common = tuple[list[Put[Query] | Delete], dict[str, Clock]]


def rescale(snapshots: Sequence[Iterable[Delta]], n_shards: int) -> Iterator[tuple[int, Delta]]:
    """Yield (new shard, page): an empty monitor that applies the pages of its shard in this order has its state.

    Everything of a stream comes from one old shard and goes to one new shard, so the order of its readings is kept.
    The order of streams may differ from before; no event depends on it.

    Parameters
    ----------
    snapshots : `Monitor.snapshot` of each old shard, at least one, all after the same batch.
    n_shards : the number of new shards, at least 1.

    Raises
    ------
    StateError : two old shards have other queries or clocks, so they are not of the same batch.
    """
    first: Common = [], {}
    recounts: dict[str, int] = {}
    for old_shard, snapshot in enumerate(snapshots):
        common: Common = [], {}
        for page in snapshot:
            common[0].extend(page.commands)
            common[1].update(page.clocks)
            for feed, n_recounted in page.recounts.items():
                recounts[feed] = max(n_recounted, recounts.get(feed, 0))
            if old_shard == 0:
                shared = Delta(commands=page.commands, clocks=page.clocks, joins=page.joins, since=page.since)
                if shared != Delta():
                    yield from ((shard, shared) for shard in range(n_shards))
            yield from _divided(page, n_shards)
        if old_shard == 0:
            first = common
        _must_equal(common, first, old_shard)
    if recounts:
        # The ordinals of recounted readings come from these numbers. A stream from any of the old shards gets new
        # ordinals only if the number is at least that of its own old shard.
        yield from ((shard, Delta(recounts=recounts)) for shard in range(n_shards))


def _must_equal(common: Common, first: Common, old_shard: int) -> None:
    if common != first:
        raise StateError(
            f"shard {old_shard} of the checkpoint has other queries or clocks than shard 0: the state is damaged. "
            "Restore the checkpoint from a copy."
        )


def _divided(page: Delta, n_shards: int) -> Iterator[tuple[int, Delta]]:
    """Yield the parts of a page that belong to streams, each for the shard of its streams."""
    for feed, streams in page.streams.items():
        for shard, rows in _rows_by_shard(streams, n_shards):
            yield shard, Delta(streams={feed: rows})
    for feed, trackings in page.pairs.items():
        for shard, tracked in _rows_by_shard(trackings, n_shards):
            yield shard, Delta(pairs={feed: _with_used_queries(tracked)})
    for shard, silent in _silent_by_shard(page.silent, n_shards):
        yield shard, Delta(silent=silent)
    for feed, held in page.held.items():
        for shard, readings in _rows_by_shard(held, n_shards):
            yield shard, Delta(held={feed: readings})


def _rows_by_shard(rows: Rows, n_shards: int) -> Iterator[tuple[int, Rows]]:
    """Yield the rows of each shard that has some, in their order."""
    for shard, chosen in _places_by_shard(rows.ids, n_shards):
        yield shard, take(rows, chosen)


def _places_by_shard(ids: Ids, n_shards: int) -> Iterator[tuple[int, np.ndarray[tuple[int], np.dtype[np.intp]]]]:
    """Yield the positions of the ids of each shard that has some, ascending."""
    shards = shards_of(ids.hashes, n_shards)
    order = np.argsort(shards, kind="stable")
    ends = np.cumsum(np.bincount(shards, minlength=n_shards))
    for shard, chosen in enumerate(np.split(order, ends[:-1])):
        if chosen.size:
            yield shard, chosen


def _with_used_queries(rows: TrackingRows) -> TrackingRows:
    """Return trackings that name only the queries which they are of."""
    used = with_used_texts(rows.query_rows, rows.query_ids)
    return replace(rows, query_rows=used.codes, query_ids=used.texts)


def _silent_by_shard(
    silent: Mapping[tuple[str, str], bool], n_shards: int
) -> Iterator[tuple[int, dict[tuple[str, str], bool]]]:
    members = list(silent.items())
    if members:
        ids = ids_of_texts([stream for (_, stream), _ in members])
        for shard, chosen in _places_by_shard(ids, n_shards):
            yield shard, dict(members[place] for place in chosen.tolist())
