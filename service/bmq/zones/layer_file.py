"""Features from a GeoPackage, a Shapefile, KML, or CSV with a column of WKT, by GDAL. Needs `bmq[gis]`.

Knows files and columns. The service knows which shapes it takes.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import shapely

from bmq.errors import ServiceError, SetupError
from bmq.wire.fault_texts import suggestion
from bmq.zones.features import Feature, FeatureLayer

# GDAL takes the first column that fits as the geometry of a CSV file.
_WKT_COLUMNS = "WKT,wkt,the_geom,geom,geometry,Geometry,polygon,shape"
_CSV_OPTIONS = {"GEOM_POSSIBLE_NAMES": _WKT_COLUMNS, "KEEP_GEOM_COLUMNS": "NO", "AUTODETECT_TYPE": "YES"}
_ID_COLUMN = "id"  # in any case: a Shapefile's columns are often upper case
# GDAL adds these to each placemark of KML, whether the file has them or not.
_KML_COLUMNS = {"tessellate", "extrude", "visibility", "drawOrder", "icon", "begin", "end", "timestamp", "altitudeMode"}


def read_layer(path: Path, layer: str | None) -> FeatureLayer:
    """Return the features of one layer of a file.

    Parameters
    ----------
    layer : its name; None: the only one.

    Raises
    ------
    SetupError
        `bmq[gis]` is not installed.
    ServiceError
        GDAL cannot read the file; it has several layers and none is named; it has no such layer; it has no geometry.
    """
    if not path.exists():
        raise ServiceError(f"There is no file {str(path)!r}. Give the path of a file.")
    pyogrio = _pyogrio()
    try:
        name = _pick_layer([str(row[0]) for row in pyogrio.list_layers(path)], layer, path)
        options = _CSV_OPTIONS if path.suffix.lower() == ".csv" else {}
        meta, fids, wkbs, columns = pyogrio.raw.read(path, layer=name, force_2d=True, return_fids=True, **options)
    except (pyogrio.errors.DataSourceError, pyogrio.errors.DataLayerError, ValueError) as error:
        raise ServiceError(
            f"GDAL cannot read {str(path)!r}: {error}. Give GeoJSON, a GeoPackage, a Shapefile, KML, or CSV with a "
            "column of WKT."
        ) from None
    if wkbs is None:
        raise ServiceError(
            f"Layer {name!r} of {str(path)!r} has no geometry. Give another --layer; in CSV, name the column of WKT "
            f"one of {_WKT_COLUMNS.replace(',', ', ')}."
        )
    is_package = path.suffix.lower() == ".gpkg"
    numbers = fids.tolist() if is_package else range(1, len(wkbs) + 1)
    names = [str(field) for field in meta["fields"]]
    if path.suffix.lower() in (".kml", ".kmz"):
        columns = [column for name_, column in zip(names, columns, strict=True) if name_ not in _KML_COLUMNS]
        names = [name_ for name_ in names if name_ not in _KML_COLUMNS]
    rows = _rows(names, columns, len(wkbs))
    return FeatureLayer(name, meta["crs"], list(map(_feature, numbers, rows, wkbs)))


def _pyogrio() -> Any:
    try:
        import pyogrio  # an extra, so that a service does not need GDAL
        import pyogrio.errors
        import pyogrio.raw
    except ImportError:
        raise SetupError(
            "The package pyogrio is missing, which reads GeoPackage, Shapefile, KML and CSV. Install it: pip install "
            '"bmq[gis]". GeoJSON in WGS 84 needs no package.'
        ) from None
    return pyogrio


def _pick_layer(layers: Sequence[str], layer: str | None, path: Path) -> str:
    if layer is not None:
        if layer not in layers:
            raise ServiceError(f"File {str(path)!r} has no layer {layer!r}. {suggestion(layer, layers)}")
        return layer
    if len(layers) != 1:
        listed = ", ".join(map(repr, layers)) or "none"
        raise ServiceError(f"File {str(path)!r} has {len(layers)} layers: {listed}. Name one with --layer.")
    return layers[0]


def _rows(names: Sequence[str], columns: Sequence[Any], n_rows: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = [{} for _ in range(n_rows)]
    for name, column in zip(names, columns, strict=True):
        for row, value in zip(rows, _json_values(column), strict=True):
            if value is not None:
                row[name] = value
    return rows


def _json_values(column: Any) -> list[Any]:
    """Return the values of a column as JSON has them; None if a value is absent."""
    if column.dtype.kind == "M":
        return [None if np.isnat(time) else str(time) for time in column]
    values = column.tolist()
    if column.dtype.kind != "f":
        return [value if isinstance(value, str | int | bool | list) else None for value in values]
    # A column of whole numbers in which some are absent comes as floats, and NaN is absent.
    present = [value for value in values if np.isfinite(value)]
    as_number: type = int if all(value.is_integer() for value in present) else float
    return [as_number(value) if np.isfinite(value) else None for value in values]


def _feature(number: int, row: dict[str, Any], wkb: bytes | None) -> Feature:
    own_id = next((value for name, value in row.items() if name.lower() == _ID_COLUMN), None)
    if wkb is None:
        return Feature(number, own_id, row, None)
    try:
        geometry = json.loads(shapely.to_geojson(shapely.from_wkb(wkb)))
    except (shapely.errors.GEOSException, ValueError) as error:
        return Feature(number, own_id, row, None, f"its geometry cannot be read: {error}")
    return Feature(number, own_id, row, geometry)
