// The land of the built-in map. Pure.

type Ring = GeoJSON.Position[];

/** Returns a ring that goes on beyond 180 degrees, and does not jump around the world: MapLibre would fill the jump. */
export function unwrapped(ring: Ring): Ring {
  let shift = 0;
  let before = ring[0]?.[0] ?? 0;
  const found = ring.map(([lon = 0, lat = 0]) => {
    if (lon - before > 180) shift -= 360;
    if (before - lon > 180) shift += 360;
    before = lon;
    return [lon + shift, lat];
  });
  // A ring around a pole does not come back to where it began; its jump is along the pole, where nobody looks.
  return shift === 0 ? found : ring;
}

/** Returns the pieces of a line, cut where it jumps around the world. */
export function pieces(line: Ring): Ring[] {
  const found: Ring[] = [[]];
  line.forEach((point, i) => {
    if (i && Math.abs((point[0] ?? 0) - (line[i - 1]?.[0] ?? 0)) > 180) found.push([]);
    found[found.length - 1]?.push(point);
  });
  return found.filter((piece) => piece.length > 1);
}

/** Returns the polygons of countries, without jumps. */
export function unwrappedLand(land: GeoJSON.FeatureCollection): GeoJSON.FeatureCollection {
  const features = land.features.map((one): GeoJSON.Feature => {
    const { geometry } = one;
    if (geometry.type === "Polygon") return { ...one, geometry: { ...geometry, coordinates: geometry.coordinates.map(unwrapped) } };
    if (geometry.type !== "MultiPolygon") return one;
    return { ...one, geometry: { ...geometry, coordinates: geometry.coordinates.map((rings) => rings.map(unwrapped)) } };
  });
  return { type: "FeatureCollection", features };
}
