"""Coordinates from one reference system to another, by PROJ. Needs `bmq[gis]` only if the two differ.

A straight line in one system is not straight in another: only the vertices are moved, and edges stay straight.
"""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import shapely
import shapely.geometry

from bmq.errors import ServiceError, SetupError
from bmq.wire.geojson import is_wgs84
from bmq.zones.features import Feature

WGS84 = "EPSG:4326"

Reproject = Callable[[Feature], Feature]


def reprojection(crs: str, to_crs: str) -> Reproject:
    """Return a function that moves a feature from one system to the other; x, or the longitude, is always first.

    A feature that has no place in the other system comes back with a fault.

    Raises
    ------
    SetupError
        The two differ, and `bmq[gis]` is not installed.
    ServiceError
        PROJ does not know one of the two.
    """
    if crs == to_crs or (is_wgs84(crs) and is_wgs84(to_crs)):
        return lambda feature: feature
    transformer = _transformer(crs, to_crs)

    def move(vertices: Any) -> Any:
        return np.column_stack(transformer.transform(vertices[:, 0], vertices[:, 1]))

    def reproject(feature: Feature) -> Feature:
        if feature.geometry is None:
            return feature
        try:
            moved = shapely.transform(shapely.geometry.shape(feature.geometry), move)
        except Exception as error:  # a geometry that is not GeoJSON fails in many ways
            return feature.failed(f"its geometry cannot be reprojected: {error}")
        if not np.isfinite(shapely.get_coordinates(moved)).all():
            return feature.failed(f"its geometry has no place in {to_crs}")
        return feature.moved(json.loads(shapely.to_geojson(moved)))

    return reproject


def _transformer(crs: str, to_crs: str) -> Any:
    try:
        import pyproj  # an extra, so that a service does not need PROJ
        import pyproj.exceptions
    except ImportError:
        raise SetupError(
            f"The package pyproj is missing, which reprojects from {crs[:60]} to {to_crs[:60]}. Install it: pip "
            'install "bmq[gis]".'
        ) from None
    known = []
    for name in (crs, to_crs):
        try:
            known.append(pyproj.CRS.from_user_input(name))
        except pyproj.exceptions.CRSError:
            raise ServiceError(
                f"The coordinate system {name[:60]!r} is not known. Write it like EPSG:25832; --file-crs replaces the "
                "file's own."
            ) from None
    return pyproj.Transformer.from_crs(known[0], known[1], always_xy=True)
