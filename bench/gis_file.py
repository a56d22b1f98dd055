"""Writes a GeoPackage of 10,000 polygons, which `bmq query import` is timed with.

Each polygon has 40 vertices and a name, in UTM zone 32. Run `python -m bench.gis_file zones.gpkg`.
"""

import sys

import numpy as np
import pyogrio.raw
import shapely

SEED = 20060509
N_POLYGONS = 10_000
N_VERTICES = 40


def main(path: str) -> None:
    """Write the file."""
    rng = np.random.default_rng(SEED)
    centres = rng.uniform([400_000, 5_700_000], [500_000, 5_900_000], (N_POLYGONS, 2))
    angles = np.linspace(0, 2 * np.pi, N_VERTICES, endpoint=False)
    radii = rng.uniform(50, 300, (N_POLYGONS, N_VERTICES))
    rings = centres[:, None, :] + np.stack([radii * np.cos(angles), radii * np.sin(angles)], axis=2)
    pyogrio.raw.write(
        path,
        np.array(shapely.to_wkb(shapely.polygons(rings)), dtype=object),
        field_data=[np.array([f"zone {k}" for k in range(N_POLYGONS)], dtype=object)],
        fields=["name"],
        layer="zones",
        geometry_type="Polygon",
        crs="EPSG:25832",
    )


if __name__ == "__main__":
    main(sys.argv[1])
