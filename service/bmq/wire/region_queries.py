"""From a definition of kind `border` or `transition` to its query: what depends on the feed.

What is refused here, in this order: `unknown_dimension`, `bad_region` (see `regions`), then `bad_option` of `where`,
`expires_at` and `passes`. Knows one definition and its feed.
"""

from collections.abc import Mapping

from bmq.errors import ControlCode, ControlError, ReadingError
from bmq.records import Feed, Initial, Kind, Pattern, Region, RegionQuery, Where
from bmq.wire.attributes import where_text
from bmq.wire.definition_models import BorderDefinition, Definition, Scalar
from bmq.wire.definitions import nearest, shorten
from bmq.wire.numeral import Numeral
from bmq.wire.readings_exact import read_event_time
from bmq.wire.regions import check_dimensions, read_region
from bmq.wire.shapes import region_covers

PASSES_DIMENSIONS = (1, 2)


def region_query(query_id: str, version: int, definition: Definition, feed: Feed, tags: str) -> RegionQuery:
    """Return the query. Definitions that mean the same give equal queries.

    Parameters
    ----------
    tags : canonical JSON of ``definition.tags``.

    Raises
    ------
    ControlError
        With the codes above.
    """
    region, exit_region = _regions(definition, feed)
    where = _where(definition.where, feed)
    expires_at = None if definition.expires_at is None else _expires_at(definition.expires_at)
    if isinstance(definition, BorderDefinition):
        _check_passes(definition, feed)
        return RegionQuery(
            query_id,
            version,
            feed.name,
            region,
            # Order and repeats mean nothing.
            streams=_each_once(definition.streams),
            initial=Initial(definition.initial),
            output_topic=definition.output_topic,
            tags=tags,
            where=where,
            enabled=definition.enabled,
            ttl_ms=definition.ttl,
            expires_at=expires_at,
            stream_ttl_ms=definition.stream_ttl,
            passes=definition.passes,
            exit_region=exit_region,
            stay_for_ms=definition.stay_for,
            away_for_ms=definition.away_for,
            cooldown_ms=definition.cooldown,
            max_events=definition.max_events,
        )
    return RegionQuery(
        query_id,
        version,
        feed.name,
        region,
        streams=_each_once(definition.streams),
        output_topic=definition.output_topic,
        tags=tags,
        where=where,
        enabled=definition.enabled,
        ttl_ms=definition.ttl,
        expires_at=expires_at,
        kind=Kind.TRANSITION,
        pattern=Pattern[definition.pattern.upper()],
        within_ms=definition.within,
    )


def _each_once(streams: list[str] | None) -> tuple[str, ...] | None:
    return None if streams is None else tuple(sorted(set(streams)))


def _regions(definition: Definition, feed: Feed) -> tuple[Region, Region | None]:
    outer = definition.exit_region if isinstance(definition, BorderDefinition) else None
    check_dimensions([definition.region, *([] if outer is None else [outer])], feed)
    region = read_region(definition.region, definition.bounds, feed, "region")
    if outer is None:
        return region, None
    exit_region = read_region(outer, definition.bounds, feed, "exit_region")
    if not region_covers(exit_region, region):
        raise ControlError(
            ControlCode.BAD_REGION,
            "Field 'exit_region' does not hold all of 'region', but it is what must be left after 'region' was "
            "entered. Make it larger.",
        )
    return region, exit_region


def _where(wanted: Mapping[str, Scalar | list[Scalar]], feed: Feed) -> Where:
    for name in wanted:
        if name not in feed.attributes:
            known = nearest(name, feed.attributes)
            raise _bad_option(
                f"Field 'where' names {shorten(name)}, but feed '{feed.name}' declares no such attribute"
                + (f"; the nearest is '{known}'. Use it, or add" if known else ". Add")
                + f" the attribute to feeds.{feed.name}.attributes in the configuration."
            )
    return tuple((name, _texts(wanted[name], feed)) for name in sorted(wanted))


def _texts(values: Scalar | list[Scalar], feed: Feed) -> tuple[str, ...]:
    listed = values if isinstance(values, list) else [values]
    return tuple(sorted({where_text(value, feed.format) for value in listed}))


def _expires_at(time: float | str) -> int:
    try:
        return read_event_time("Field 'expires_at'", time if isinstance(time, str) else Numeral(time))
    except ReadingError as error:
        raise _bad_option(f"{error}.") from None


def _check_passes(definition: BorderDefinition, feed: Feed) -> None:
    if definition.passes and len(feed.dimensions) not in PASSES_DIMENSIONS:
        raise _bad_option(
            f"Field 'passes' is true, but feed '{feed.name}' has {len(feed.dimensions)} dimensions, and passes are "
            "found in one and two. Leave it out."
        )


def _bad_option(message: str) -> ControlError:
    return ControlError(ControlCode.BAD_OPTION, message)
