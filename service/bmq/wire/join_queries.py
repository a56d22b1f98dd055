"""From a definition of kind `band_join` or `window_join` to its query, with the checks that need the two feeds.

The checks, in this order: `unknown_dimension` for `on` and for conjunctions, `bad_region` for bands and intervals, then
`bad_option` for `join`, `where`, `equal` and `expires_at`. Knows one definition and its feeds.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import TypeVar

from bmq.errors import ControlCode, ControlError
from bmq.records import Band, Conjunction, Feed, JoinQuery, JoinSide, Kind, Region, Where
from bmq.wire.common_options import bad_option, read_expires_at, read_where
from bmq.wire.condition_models import SIDES, Bounds, JoinConjunction
from bmq.wire.definition_models import BandJoinDefinition, JoinDefinition, WindowJoinDefinition
from bmq.wire.fault_texts import shorten, suggestion
from bmq.wire.region_definitions import check_finite
from bmq.wire.select_queries import check_columns, columns_of, read_boxes

T = TypeVar("T")


def band_join_query(
    query_id: str, version: int, definition: BandJoinDefinition, tags: str, left: Feed, right: Feed
) -> JoinQuery:
    """Return the query. Definitions with the same meaning give equal queries.

    Parameters
    ----------
    tags : canonical JSON of ``definition.tags``.

    Raises
    ------
    ControlError
        With the codes above.
    """
    feeds = (left, right)
    alternatives = (_one_band(definition, feeds),)
    sides = _sides(definition, feeds)
    query = JoinQuery(query_id, version, Kind.BAND_JOIN, sides[0], sides[1], alternatives)
    return replace(_with_options(query, definition, tags), reports_queries=definition.report == "queries")


def window_join_query(
    query_id: str, version: int, definition: WindowJoinDefinition, tags: str, left: Feed, right: Feed
) -> JoinQuery:
    """Return the query, as `band_join_query` does."""
    feeds = (left, right)
    alternatives = _conjunctions(definition, feeds)
    sides = [
        replace(side, window_ms=own.window.ms, window_count=own.window.count)
        for side, own in zip(_sides(definition, feeds), (definition.left, definition.right), strict=True)
    ]
    query = JoinQuery(query_id, version, Kind.WINDOW_JOIN, sides[0], sides[1], alternatives)
    return _with_options(query, definition, tags)


def _with_options(query: JoinQuery, definition: JoinDefinition, tags: str) -> JoinQuery:
    """Return the query with the options that every join has."""
    return replace(
        query,
        output_topic=definition.output_topic,
        tags=tags,
        enabled=definition.enabled,
        ttl_ms=definition.ttl,
        expires_at=read_expires_at(definition.expires_at),
    )


# -- the condition on a pair ------------------------------------------------------------------------------------------


def _one_band(definition: BandJoinDefinition, feeds: Sequence[Feed]) -> Conjunction:
    columns = []
    for side, name, feed in zip(("left", "right"), (definition.on.left, definition.on.right), feeds, strict=True):
        if name not in feed.dimensions:
            raise _unknown_dimension(f"on.{side}", name, feed, feed.dimensions)
        columns.append(feed.dimensions.index(name))
    lo, hi = definition.band
    band = _closed("band", columns[0], columns[1], lo, hi, "[]")
    return Conjunction(_everywhere(feeds[0]), _everywhere(feeds[1]), (band,))


def _conjunctions(definition: WindowJoinDefinition, feeds: Sequence[Feed]) -> tuple[Conjunction, ...]:
    """Return the conjunctions, each once and sorted, because order and repeats have no meaning."""
    for i, conjunction in enumerate(definition.any):
        for name_by_side, feed in zip(_by_side(conjunction.intervals), feeds, strict=True):
            check_columns(name_by_side, feed)
        for k, (left, right, *_) in enumerate(conjunction.band or ()):
            _columns(f"any[{i}].band[{k}]", left, right, feeds)
    found = {one for i, conjunction in enumerate(definition.any) for one in _read_conjunction(i, conjunction, feeds)}
    return tuple(sorted(found, key=_order))


def _read_conjunction(i: int, conjunction: JoinConjunction, feeds: Sequence[Feed]) -> list[Conjunction]:
    """Return conjunction ``i`` of a definition; several if an interval of longitudes crosses the antimeridian."""
    bands = set()
    for k, (left, right, lo, hi, ends) in enumerate(conjunction.band or ()):
        place = f"any[{i}].band[{k}]"
        left_column, right_column = _columns(place, left, right, feeds)
        bands.add(_closed(place, left_column, right_column, lo, hi, ends))
    in_order = tuple(sorted(bands, key=lambda band: (band.left, band.right, band.lo, band.hi)))
    boxes = (read_boxes(asked, feed) for asked, feed in zip(_by_side(conjunction.intervals), feeds, strict=True))
    return [Conjunction(left_box, right_box, in_order) for left_box, right_box in product(*boxes)]


def _order(conjunction: Conjunction) -> tuple[object, ...]:
    boxes = (conjunction.left, conjunction.right)
    bands = [(band.left, band.right, band.lo, band.hi) for band in conjunction.bands]
    return (*((box.lo, box.hi) for box in boxes), bands)


def _everywhere(feed: Feed) -> Region:
    n = len(columns_of(feed))
    return Region((-math.inf,) * n, (math.inf,) * n)


def _columns(place: str, left: str, right: str, feeds: Sequence[Feed]) -> tuple[int, int]:
    return _column(f"{place}[0]", left, SIDES[0], feeds[0]), _column(f"{place}[1]", right, SIDES[1], feeds[1])


def _column(place: str, name: str, side: str, feed: Feed) -> int:
    """Return the column that "left.NAME" or "right.NAME" means; the name must begin with ``side``."""
    columns = columns_of(feed)
    known = name.removeprefix(side)
    if not name.startswith(side) or known not in columns:
        raise _unknown_dimension(place, name, feed, [side + column for column in columns])
    return columns.index(known)


def _unknown_dimension(place: str, name: str, feed: Feed, known: Sequence[str]) -> ControlError:
    return ControlError(
        ControlCode.UNKNOWN_DIMENSION,
        f"Field '{place}' is {shorten(name)}, but feed '{feed.name}' has no such field there. "
        f"{suggestion(name, known)}",
    )


def _closed(place: str, left: int, right: int, lo: float | None, hi: float | None, ends: Bounds) -> Band:
    """Return the band with both ends closed: an open end moves to the next double, and no double lies between."""
    check_finite(place, (lo, hi))
    lower = -math.inf if lo is None else math.nextafter(lo, math.inf) if ends[0] == "(" else lo
    upper = math.inf if hi is None else math.nextafter(hi, -math.inf) if ends[1] == ")" else hi
    if lower > upper:
        raise ControlError(
            ControlCode.BAD_REGION,
            f"Field '{place}' holds no difference between {lo} and {hi} with bounds {ends}. Swap the two numbers, or "
            "widen it.",
        )
    return Band(left, right, lower, upper)


# -- options ----------------------------------------------------------------------------------------------------------


def _sides(definition: JoinDefinition, feeds: Sequence[Feed]) -> list[JoinSide]:
    """Return the two sides of a join, without windows."""
    for feed in feeds:
        if not feed.join:
            raise bad_option(
                f"Feed '{feed.name}' takes part in no joins: all readings of a feed that does go to every shard. Set "
                f"join = true under [feeds.{feed.name}] in the configuration; that needs a new checkpoint."
            )
    wheres = _wheres(definition, feeds)
    equal = definition.equal
    sides = []
    for feed, where, field in zip(
        feeds, wheres, (None, None) if equal is None else (equal.left, equal.right), strict=True
    ):
        _check_equal(field, feed)
        sides.append(JoinSide(feed.name, where, field))
    return sides


def _wheres(definition: JoinDefinition, feeds: Sequence[Feed]) -> list[Where]:
    for name in definition.where:
        if not name.startswith(SIDES):
            raise bad_option(
                f"Field 'where' names {shorten(name)}, but a join has two feeds. Write "
                f"{shorten(SIDES[0] + name)} or {shorten(SIDES[1] + name)}."
            )
    return [read_where(wanted, feed) for wanted, feed in zip(_by_side(definition.where), feeds, strict=True)]


def _check_equal(field: str | None, feed: Feed) -> None:
    fields = (feed.stream_id, *columns_of(feed))
    if field is not None and field not in fields:
        raise bad_option(
            f"Field 'equal' names {shorten(field)}, but feed '{feed.name}' has no such field. "
            f"{suggestion(field, fields)} If readings have it, add it to feeds.{feed.name}.attributes in the "
            "configuration."
        )


def _by_side(named: Mapping[str, T]) -> tuple[dict[str, T], dict[str, T]]:
    """Return the items that begin with "left." and with "right.", by name without this prefix."""
    left, right = (
        {name.removeprefix(side): one for name, one in named.items() if name.startswith(side)} for side in SIDES
    )
    return left, right
