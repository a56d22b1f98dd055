"""The features of a file, whatever its format. Knows neither feeds nor queries."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class Feature:
    """One area of a file, or what stands in its place.

    Attributes
    ----------
    number : how the file counts it: the `fid` of a GeoPackage, else its place, from 1 on.
    own_id : the id that the file gives it, unchecked; None: it has no id.
    properties : as JSON has them; values that are absent are left out.
    geometry : GeoJSON as Python reads it, unchecked; None: there is no geometry.
    fault : why the geometry cannot be used; "" if it can.
    """

    number: int
    own_id: Any
    properties: Mapping[str, Any]
    geometry: Any
    fault: str = ""

    def moved(self, geometry: Any) -> "Feature":
        """Return the feature with another geometry."""
        return replace(self, geometry=geometry)

    def failed(self, fault: str) -> "Feature":
        """Return the feature without a geometry that can be used."""
        return replace(self, geometry=None, fault=fault)


@dataclass(frozen=True, slots=True)
class FeatureLayer:
    """The features of one layer.

    Attributes
    ----------
    name : of the layer; of the file if the format has no layers.
    crs : the coordinate reference system, as the file names it; None: the file names none.
    """

    name: str
    crs: str | None
    features: Sequence[Feature]


def first_position(geometry: Any) -> list[Any] | None:
    """Return the first position of a GeoJSON geometry, [x, y]; None if there is no position."""
    found = geometry.get("coordinates") if isinstance(geometry, dict) else None
    while isinstance(found, list) and found and isinstance(found[0], list):
        found = found[0]
    return found[:2] if isinstance(found, list) and found else None
