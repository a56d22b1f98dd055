"""From features to definitions of border queries, each checked by the service's own rules.

A refused feature does not stop the others. Knows no file format and no Kafka.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bmq.errors import ControlCode, ControlError
from bmq.wire.fault_texts import shorten
from bmq.zones.features import Feature, FeatureLayer, first_position
from bmq.zones.repair import repair
from bmq.zones.reprojection import Reproject

ALL_TAGS = "*"

Check = Callable[[str, bytes], None]  # raises ControlError, as `checks.check_definition`


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the user wants of every query.

    Attributes
    ----------
    feed : the feed that the queries watch.
    id_property : the property that is the query id; None: the feature's own id, else layer name and number.
    id_prefix : goes before each id.
    tags : the properties that become tags; `ALL_TAGS`: all that are a text, a number or a truth value.
    options : further fields of every definition.
    with_repair : whether areas that cross themselves are repaired.
    lonlat : whether the coordinates are longitude and latitude.
    """

    feed: str
    id_property: str | None = None
    id_prefix: str = ""
    tags: tuple[str, ...] = ()
    options: Mapping[str, Any] | None = None
    with_repair: bool = False
    lonlat: bool = True


@dataclass(frozen=True, slots=True)
class FeatureQuery:
    """A definition that the service accepts, as far as is known here.

    Attributes
    ----------
    repaired : what `--repair` changed; "" if nothing.
    """

    number: int
    query_id: str
    definition: bytes
    repaired: str = ""


@dataclass(frozen=True, slots=True)
class RefusedFeature:
    """A feature that becomes no query, with the reason.

    Attributes
    ----------
    query_id : None if the feature has no id.
    place : its first position; None if there is no position.
    """

    number: int
    query_id: str | None
    place: list[Any] | None
    code: ControlCode
    message: str

    def line(self) -> str:
        """Return the reason in one line: number, id, place, code and message."""
        named = "" if self.query_id is None else f" {self.query_id!r}"
        place = "" if self.place is None else f" at {shorten(self.place)}"
        return f"feature {self.number}{named}{place}: {self.code.value}: {self.message}"


def make_queries(
    layer: FeatureLayer, wishes: Wishes, reproject: Reproject, check: Check
) -> Iterator[FeatureQuery | RefusedFeature]:
    """Yield a query or a refusal for each feature, in the order of the file.

    1. Find the query id; the second feature of an id is refused.
    2. Reproject.
    3. Check the definition.
    4. If it has a bad region and `with_repair`, repair it, and check it again.
    """
    number_by_id: dict[str, int] = {}
    for given in layer.features:
        query_id: str | None = None
        feature = given
        try:
            query_id = wishes.id_prefix + _query_id(given, layer.name, wishes.id_property)
            earlier = number_by_id.setdefault(query_id, given.number)
            if earlier != given.number:
                raise _bad_id(f"feature {earlier} has the same id, but each is a query. Change one, or --id-property.")
            feature = reproject(given)
            definition, change = _checked(query_id, feature, wishes, check)
        except ControlError as error:
            place = first_position(feature.geometry or given.geometry)
            yield RefusedFeature(given.number, query_id, place, error.code, str(error))
        else:
            yield FeatureQuery(given.number, query_id, definition, change)


def n_without_id(layer: FeatureLayer, wishes: Wishes) -> int:
    """Return how many features get their query id from the layer and their number."""
    return 0 if wishes.id_property is not None else sum(one.own_id in (None, "") for one in layer.features)


def property_names(features: Iterable[Feature]) -> list[str]:
    """Return the names of all properties, each once, in the order of the file."""
    return list(dict.fromkeys(name for feature in features for name in feature.properties))


def _query_id(feature: Feature, layer: str, id_property: str | None) -> str:
    found = feature.own_id if id_property is None else feature.properties.get(id_property)
    if id_property is None and (found is None or found == ""):
        return f"{layer}-{feature.number}"
    if isinstance(found, str) and found:
        return found
    if isinstance(found, int | float) and not isinstance(found, bool):
        return json.dumps(found)
    place = "its id" if id_property is None else f"its property {shorten(id_property)}"
    names = ", ".join(map(shorten, feature.properties)) or "none"
    raise _bad_id(
        f"{place} is {shorten(found)}, but a query id is a text or a number. Name another property with "
        f"--id-property; it has: {names}."
    )


def _checked(query_id: str, feature: Feature, wishes: Wishes, check: Check) -> tuple[bytes, str]:
    """Return the definition, and what a repair changed."""
    if feature.geometry is None:
        fault = feature.fault or "it has no geometry, so it is nowhere"
        raise ControlError(ControlCode.BAD_REGION, f"{fault}. Correct it, or take it out of the file.")
    definition = _definition(feature, feature.geometry, wishes)
    try:
        check(query_id, definition)
        return definition, ""
    except ControlError as error:
        if not wishes.with_repair or error.code is not ControlCode.BAD_REGION:
            raise
        geometry, change = repair(feature.geometry, lonlat=wishes.lonlat)
        if not change:
            raise
    definition = _definition(feature, geometry, wishes)
    check(query_id, definition)
    return definition, change


def _definition(feature: Feature, geometry: Any, wishes: Wishes) -> bytes:
    options = dict(wishes.options or {})
    definition = {"kind": "border", "feed": wishes.feed, "region": {"geojson": geometry}} | options
    tags, given = _tags(feature.properties, wishes.tags), options.get("tags", {})
    if tags and isinstance(given, dict):  # else the rules for definitions refuse it
        definition["tags"] = given | tags
    return json.dumps(definition).encode()


def _tags(properties: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    if ALL_TAGS in names:
        return {name: value for name, value in properties.items() if isinstance(value, str | int | float)}
    return {name: properties[name] for name in names if name in properties}


def _bad_id(message: str) -> ControlError:
    return ControlError(ControlCode.MISSING_FIELD, message)
