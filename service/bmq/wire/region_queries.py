"""From a definition of kind `border`, `transition` or `match` to its query, with the checks that need the feed.

The checks, in this order: `unknown_dimension`, `bad_region` (see `region_definitions`), then `bad_option` for `where`,
`expires_at` and `passes`. Knows one definition and its feed.
"""

from dataclasses import replace

from bmq.errors import ControlCode, ControlError
from bmq.records import Feed, Initial, Kind, Pattern, Region, RegionQuery
from bmq.wire.common_options import bad_option, read_expires_at, read_where
from bmq.wire.definition_models import BorderDefinition, MatchDefinition, RegionDefinition, TransitionDefinition
from bmq.wire.region_definitions import check_dimensions, read_region
from bmq.wire.shape_definitions import region_covers

PASSES_DIMENSIONS = (1, 2)


def border_query(query_id: str, version: int, definition: BorderDefinition, tags: str, feed: Feed) -> RegionQuery:
    """Return the query. Definitions with the same meaning give equal queries.

    Parameters
    ----------
    tags : canonical JSON of ``definition.tags``.

    Raises
    ------
    ControlError
        With the codes above.
    """
    region, exit_region = _regions(definition, feed)
    query = _region_query(query_id, version, definition, tags, feed, region)
    _check_passes(definition, feed)
    return replace(
        query,
        kind=Kind.BORDER,
        initial=Initial(definition.initial),
        stream_ttl_ms=definition.stream_ttl,
        passes=definition.passes,
        exit_region=exit_region,
        stay_for_ms=definition.stay_for,
        away_for_ms=definition.away_for,
        cooldown_ms=definition.cooldown,
        max_events=definition.max_events,
    )


def transition_query(
    query_id: str, version: int, definition: TransitionDefinition, tags: str, feed: Feed
) -> RegionQuery:
    """Return the query, as `border_query` does."""
    region, _ = _regions(definition, feed)
    query = _region_query(query_id, version, definition, tags, feed, region)
    pattern = Pattern[definition.pattern.upper()]
    return replace(query, kind=Kind.TRANSITION, pattern=pattern, within_ms=definition.within)


def match_query(query_id: str, version: int, definition: MatchDefinition, tags: str, feed: Feed) -> RegionQuery:
    """Return the query, as `border_query` does."""
    region, _ = _regions(definition, feed)
    return replace(_region_query(query_id, version, definition, tags, feed, region), kind=Kind.MATCH)


def _region_query(
    query_id: str, version: int, definition: RegionDefinition, tags: str, feed: Feed, region: Region
) -> RegionQuery:
    """Return the query with the options that every kind with a region has."""
    return RegionQuery(
        query_id,
        version,
        feed.name,
        region,
        # Sorted and each once, because order and repeats have no meaning.
        streams=None if definition.streams is None else tuple(sorted(set(definition.streams))),
        output_topic=definition.output_topic,
        tags=tags,
        where=read_where(definition.where, feed),
        enabled=definition.enabled,
        ttl_ms=definition.ttl,
        expires_at=read_expires_at(definition.expires_at),
    )


def _regions(definition: RegionDefinition, feed: Feed) -> tuple[Region, Region | None]:
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


def _check_passes(definition: BorderDefinition, feed: Feed) -> None:
    if definition.passes and len(feed.dimensions) not in PASSES_DIMENSIONS:
        raise bad_option(
            f"Field 'passes' is true, but feed '{feed.name}' has {len(feed.dimensions)} dimensions, and passes are "
            "found in one and two. Leave it out."
        )
