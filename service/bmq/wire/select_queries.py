"""From a definition of kind `select` to its query, and from intervals by name to boxes, which joins need as well.

    columns of a feed       its dimensions, then its attributes
    a conjunction           a box over the columns; two boxes if an interval of longitudes crosses the antimeridian

The checks, in this order: `unknown_dimension`, `bad_region` (see `region_definitions`), then `bad_option` for `where`
and `expires_at`. Knows one definition and its feed.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import product

from bmq.errors import ControlCode, ControlError
from bmq.records import Feed, Kind, Region, RegionQuery
from bmq.records.plane import EAST, WEST
from bmq.wire.common_options import read_expires_at, read_where
from bmq.wire.condition_models import Bounds
from bmq.wire.definition_models import SelectDefinition
from bmq.wire.fault_texts import shorten, suggestion
from bmq.wire.region_definitions import read_attribute_interval, read_interval

Asked = Mapping[str, tuple[float | None, float | None, Bounds]]

_NOT_ASKED = (-math.inf, math.inf)


def select_query(query_id: str, version: int, definition: SelectDefinition, tags: str, feed: Feed) -> RegionQuery:
    """Return the query. Definitions with the same meaning give equal queries.

    Parameters
    ----------
    tags : canonical JSON of ``definition.tags``.

    Raises
    ------
    ControlError
        With the codes above.
    """
    for conjunction in definition.any:
        check_columns(conjunction, feed)
    boxes = [box for conjunction in definition.any for box in read_boxes(conjunction, feed)]
    return RegionQuery(
        query_id,
        version,
        feed.name,
        _around(boxes, len(feed.dimensions)),
        output_topic=definition.output_topic,
        tags=tags,
        where=read_where(definition.where, feed),
        enabled=definition.enabled,
        ttl_ms=definition.ttl,
        expires_at=read_expires_at(definition.expires_at),
        kind=Kind.SELECT,
        alternatives=in_one_order(boxes),
    )


def check_columns(names: Iterable[str], feed: Feed) -> None:
    """Raise ControlError with `unknown_dimension` if a name is neither a dimension nor an attribute."""
    columns = columns_of(feed)
    for name in names:
        if name not in columns:
            raise ControlError(
                ControlCode.UNKNOWN_DIMENSION,
                f"Feed '{feed.name}' has no dimension and no attribute {shorten(name)}. {suggestion(name, columns)} If "
                f"readings have it, add it to feeds.{feed.name}.attributes in the configuration.",
            )


def columns_of(feed: Feed) -> tuple[str, ...]:
    """Return the names of the columns of a feed."""
    return (*feed.dimensions, *feed.attributes)


def read_boxes(asked: Asked, feed: Feed) -> list[Region]:
    """Return the boxes over the feed's columns that satisfy every interval of ``asked``; its names are checked.

    Raises
    ------
    ControlError
        `bad_region`.
    """
    columns = []
    for name in columns_of(feed):
        if name not in asked:
            columns.append([_NOT_ASKED])
            continue
        *interval, ends = asked[name]
        if name in feed.dimensions:
            columns.append(_parts(read_interval(name, interval, ends, feed)))
        else:
            columns.append([read_attribute_interval(name, interval, ends)])
    return [Region(tuple(lo for lo, _ in box), tuple(hi for _, hi in box)) for box in product(*columns)]


def _parts(interval: tuple[float, float]) -> list[tuple[float, float]]:
    lo, hi = interval
    if lo < hi:
        return [interval]
    # The interval crosses the antimeridian. The longitudes of readings are in [-180, 180).
    return [part for part in ((lo, EAST), (WEST, hi)) if part[0] < part[1]]


def in_one_order(regions: Iterable[Region]) -> tuple[Region, ...]:
    """Return each of the regions once and sorted, because order and repeats have no meaning."""
    return tuple(sorted(set(regions), key=lambda region: (region.lo, region.hi)))


def _around(boxes: Sequence[Region], n_dims: int) -> Region:
    lo = (min(box.lo[i] for box in boxes) for i in range(n_dims))
    hi = (max(box.hi[i] for box in boxes) for i in range(n_dims))
    return Region(tuple(lo), tuple(hi))
