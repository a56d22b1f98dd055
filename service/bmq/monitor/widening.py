"""The state of a shard, after some of its feeds got more attributes.

    Delta of feeds with k attributes ──► the same Delta of feeds with k + n, the new ones last and null everywhere

An attribute that a record does not have is null. So the state is as if no record so far had had the new attributes. No
query asks for them yet: the boxes of `select` queries and joins get an unbounded side for each. Knows what a shard
keeps, and nothing of checkpoints.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

import numpy as np

from bmq.records import Delta, JoinQuery, JoinRows, Put, Query, Readings, Region, RegionQuery, StreamRows
from bmq.records.attribute_texts import NULL, SEPARATOR
from bmq.records.columns import Attributes

Rows = TypeVar("Rows", StreamRows, Readings)


def widen(page: Delta, n_new: Mapping[str, int]) -> Delta:
    """Return a page of a snapshot for feeds that have more attributes than before.

    Parameters
    ----------
    n_new : feed -> the number of new attributes, 1 at least; other feeds stay as they are.
    """
    return replace(
        page,
        commands=tuple(
            replace(command, query=_query(command.query, n_new)) if isinstance(command, Put) else command
            for command in page.commands
        ),
        streams={feed: _rows(rows, n_new.get(feed, 0)) for feed, rows in page.streams.items()},
        held={feed: _rows(rows, n_new.get(feed, 0)) for feed, rows in page.held.items()},
        joins={feed: _joined(rows, n_new.get(feed, 0)) for feed, rows in page.joins.items()},
    )


def _query(query: Query, n_new: Mapping[str, int]) -> Query:
    if isinstance(query, RegionQuery):
        n = n_new.get(query.feed, 0)
        return replace(query, alternatives=tuple(_unbounded(region, n) for region in query.alternatives))
    return _join(query, n_new)


def _join(query: JoinQuery, n_new: Mapping[str, int]) -> JoinQuery:
    of_left, of_right = (n_new.get(feed, 0) for feed in query.feeds)
    alternatives = (
        replace(one, left=_unbounded(one.left, of_left), right=_unbounded(one.right, of_right))
        for one in query.alternatives
    )
    return replace(query, alternatives=tuple(alternatives))


def _unbounded(region: Region, n: int) -> Region:
    """Return a box with n more columns, in which it has no bounds."""
    return replace(region, lo=region.lo + (-np.inf,) * n, hi=region.hi + (np.inf,) * n)


def _joined(rows: JoinRows, n: int) -> JoinRows:
    window = rows.window and replace(rows.window, readings=_rows(rows.window.readings, n))
    return replace(
        rows,
        streams=rows.streams and _rows(rows.streams, n),
        held=rows.held and _rows(rows.held, n),
        window=window,
    )


def _rows(rows: Rows, n: int) -> Rows:
    if not n:
        return rows
    nulls: list[str] = [NULL] * n
    before = rows.attributes
    if before is None:
        return replace(rows, attributes=Attributes(np.zeros(len(rows.ids), np.int32), (SEPARATOR.join(nulls),)))
    texts = tuple(SEPARATOR.join((text, *nulls)) for text in before.texts)
    return replace(rows, attributes=Attributes(before.codes, texts))
