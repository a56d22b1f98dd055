"""`bmq query import`: a border query for each area of a file of a geographic information system."""

import json
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from bmq.cli.publishing import ManyTimeout, NoWait, installation_of, publish_many, with_progress
from bmq.cli.target import BootstrapOption, ConfigOption, find_target
from bmq.cli.terminal import show_line
from bmq.client.client import REPLY_TIMEOUT_SECONDS
from bmq.errors import ServiceError
from bmq.records import Feed, Installation
from bmq.wire.fault_texts import suggestion
from bmq.wire.geojson import is_wgs84
from bmq.zones.checks import check_definition
from bmq.zones.feature_queries import (
    ALL_TAGS,
    FeatureQuery,
    RefusedFeature,
    Wishes,
    make_queries,
    n_without_id,
    property_names,
)
from bmq.zones.features import FeatureLayer
from bmq.zones.geojson_file import read_geojson
from bmq.zones.layer_file import read_layer
from bmq.zones.reprojection import WGS84, Reproject, reprojection

GEOJSON_SUFFIXES = (".geojson", ".json")
STDIN = Path("-")

Option = partial(typer.Option, show_default=False)


def import_features(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE|-",
            help="GeoJSON, GeoPackage, Shapefile, KML, or CSV with a column of WKT; - reads GeoJSON from stdin.",
        ),
    ],
    feed: Annotated[str, Option("--feed", metavar="FEED", help="The feed that the queries watch.")],
    layer: Annotated[str | None, Option("--layer", metavar="NAME", help="The layer, if the file has several.")] = None,
    id_property: Annotated[
        str | None,
        Option("--id-property", metavar="NAME", help="The property that is the query id.  [default: `id`]"),
    ] = None,
    id_prefix: Annotated[str, Option("--id-prefix", metavar="TEXT", help="Goes before each query id.")] = "",
    tag: Annotated[
        list[str] | None,
        Option("--tag", metavar="NAME", help='A property that becomes a tag; may be repeated; "*": all of them.'),
    ] = None,
    stay_for: Annotated[str | None, Option("--stay-for", metavar="TIME", help="`stay_for` of all, like 30s.")] = None,
    away_for: Annotated[str | None, Option("--away-for", metavar="TIME", help="`away_for` of all.")] = None,
    cooldown: Annotated[str | None, Option("--cooldown", metavar="TIME", help="`cooldown` of all.")] = None,
    ttl: Annotated[str | None, Option("--ttl", metavar="TIME", help="`ttl` of all.")] = None,
    output_topic: Annotated[
        str | None, Option("--output-topic", metavar="TOPIC", help="`output_topic` of all.")
    ] = None,
    field: Annotated[
        list[str] | None,
        Option("--set", metavar="FIELD=JSON", help="Any other field of all definitions; may be repeated."),
    ] = None,
    crs: Annotated[
        str | None,
        Option("--crs", metavar="CRS", help="The coordinate system of a feed of a plane, like EPSG:25832."),
    ] = None,
    file_crs: Annotated[
        str | None, Option("--file-crs", metavar="CRS", help="The coordinate system of the file, instead of its own.")
    ] = None,
    repair: Annotated[bool, typer.Option("--repair", help="Repair areas that cross themselves, and say how.")] = False,
    all_or_nothing: Annotated[
        bool, typer.Option("--all-or-nothing", help="Publish nothing if a feature is refused.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check everything, and publish nothing.")] = False,
    no_wait: NoWait = False,
    timeout: ManyTimeout = REPLY_TIMEOUT_SECONDS,
    config: ConfigOption = None,
    bootstrap: BootstrapOption = None,
) -> None:
    """Register a border query for each area of a file, or replace it.

    The query id is a property of the feature; without --id-property, its `id`, else the layer and the number of the
    feature, like zones-17. Coordinates are reprojected to WGS 84. On a feed of a plane they stay as they are, unless
    --crs names the plane's system. A feature that the service would reject is refused with its number, place and
    reason; the others are published, and the exit code is 1. Formats other than GeoJSON need pip install "bmq[gis]".
    """
    target = find_target(config, bootstrap)
    installation = installation_of(target)
    features = _read(file, layer)
    given = {
        "stay_for": stay_for,
        "away_for": away_for,
        "cooldown": cooldown,
        "ttl": ttl,
        "output_topic": output_topic,
    }
    options = {name: value for name, value in given.items() if value is not None} | _fields(field or [])
    lonlat = _is_lonlat(feed, installation, crs)
    wishes = Wishes(feed, id_property, id_prefix, tuple(tag or ()), options, repair, lonlat)
    _check_names(features, wishes)
    reproject = _find_reprojection(file, features, lonlat, crs, file_crs)

    def check(query_id: str, definition: bytes) -> None:
        check_definition(query_id, definition, installation)

    made = make_queries(features, wishes, reproject, check)
    results = list(with_progress("features", made, len(features.features)))
    queries = [result for result in results if isinstance(result, FeatureQuery)]
    refused = [result for result in results if isinstance(result, RefusedFeature)]
    _show_results(file, queries, refused, n_without_id(features, wishes))
    if refused and all_or_nothing:
        raise ServiceError(f"{len(refused)} of {len(results)} features were refused. Nothing was published.")
    if dry_run:
        for query in queries:
            show_line(f"would put: {query.query_id}")
    else:
        publish_many(target, {query.query_id: query.definition for query in queries}, timeout, no_wait=no_wait)
    if refused:
        raise ServiceError(
            f"{len(refused)} of {len(results)} features were refused; see above. The other {len(queries)} "
            f"{'would be published' if dry_run else 'are published'}."
        )


def _read(file: Path, layer: str | None) -> FeatureLayer:
    if file == STDIN:
        return read_geojson(sys.stdin.buffer.read(), "stdin")
    if file.suffix.lower() not in GEOJSON_SUFFIXES:
        return read_layer(file, layer)
    try:
        return read_geojson(file.read_bytes(), file.stem)
    except OSError as error:
        raise ServiceError(f"File {str(file)!r} cannot be read: {error.strerror}. Give the path of a file.") from None


def _fields(given: Sequence[str]) -> dict[str, Any]:
    """Return the fields of --set; a value that is not JSON is a text."""
    fields: dict[str, Any] = {}
    for one in given:
        name, equals, text = one.partition("=")
        if not equals or not name:
            raise typer.BadParameter(f"{one!r} is not FIELD=JSON. Write it like max_events=10.", param_hint="--set")
        try:
            fields[name] = json.loads(text)
        except ValueError:
            fields[name] = text
    return fields


def _is_lonlat(name: str, installation: Installation | None, crs: str | None) -> bool:
    """Return whether the coordinates of the queries are longitude and latitude."""
    feed: Feed | None = None if installation is None else installation.feeds.get(name)
    if feed is not None and feed.lonlat and crs is not None and not is_wgs84(crs):
        raise typer.BadParameter(
            f"Feed {name!r} is in longitude and latitude, so its queries are in WGS 84. Leave --crs out, or use "
            "--file-crs if you mean the system of the file.",
            param_hint="--crs",
        )
    # Without a configuration the space of the feed is not known. Then it is the globe, unless --crs names a plane.
    return feed.lonlat if feed is not None else crs is None or is_wgs84(crs)


def _check_names(features: FeatureLayer, wishes: Wishes) -> None:
    """Refuse names of properties that no feature has: each feature would be refused, or lack the tag."""
    known = property_names(features.features)
    asked = [("--id-property", wishes.id_property), *(("--tag", name) for name in wishes.tags if name != ALL_TAGS)]
    for option, name in asked:
        if name is not None and name not in known:
            raise typer.BadParameter(
                f"No feature has a property {name!r}. {suggestion(name, known)}", param_hint=option
            )


def _find_reprojection(
    file: Path, features: FeatureLayer, lonlat: bool, crs: str | None, file_crs: str | None
) -> Reproject:
    own = file_crs or features.crs
    to_crs = WGS84 if lonlat else crs
    if to_crs is None:
        return lambda feature: feature
    if own is None:
        # RFC 7946 has GeoJSON in WGS 84; other formats may leave it open.
        if file != STDIN and file.suffix.lower() not in GEOJSON_SUFFIXES:
            show_line(
                f"{file} names no coordinate system, so it is read as WGS 84. --file-crs names another.", err=True
            )
        own = WGS84
    return reprojection(own, to_crs)


def _show_results(
    file: Path, queries: Sequence[FeatureQuery], refused: Sequence[RefusedFeature], n_numbered: int
) -> None:
    for query in queries:
        if query.repaired:
            show_line(f"{file}: feature {query.number} {query.query_id!r}: repaired: {query.repaired}", err=True)
    for one in refused:
        show_line(f"{file}: {one.line()}", err=True)
    if n_numbered:
        show_line(
            f"{file}: {n_numbered} features have no id, so their query ids are the layer and the number of the "
            "feature. If features move in the file, so do their ids; --id-property names a property that stays.",
            err=True,
        )
