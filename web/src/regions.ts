// Regions as rings for the map, and as intervals for the chart. Pure; the service alone decides what is inside.

import type { Extent } from "./projection";
import type { FeedSetup, Region } from "./protocol";

export type Point = [number, number];
/** Polygons, each with its outer ring first, then holes. */
export type Polygons = Point[][][];

const CIRCLE_POINTS = 72;
const EARTH_METRES = 6_371_008.8;
const STEP_DEGREES = 2; // a side is straight in degrees and not on the map, so long ones are cut into short ones
const MOST_STEPS = 180 / STEP_DEGREES; // the longest side of a valid ring; a latitude of 1e12 would never end

/** Returns the polygons of a region of two dimensions; none if it cannot be drawn. */
export function polygonsOf(region: Region, feed: FeedSetup, extent: Extent): Polygons {
  if (region.box) return [[boxRing(region.box, feed, extent)]];
  if (region.polygon) return [[ringOf(region.polygon as Point[], feed.lonlat)]];
  if (region.circle) {
    const { center, radius } = region.circle;
    return [[circleRing(center as Point, radius, feed.lonlat)]];
  }
  if (region.geojson) return geojsonPolygons(region.geojson, feed.lonlat);
  return [];
}

/** Returns the intervals of a region of one dimension; an open end is infinite. */
export function intervalOf(region: Region, dimension: string): [number, number] | null {
  const interval = region.box?.[dimension];
  return interval ? [interval[0] ?? -Infinity, interval[1] ?? Infinity] : null;
}

export function boxSides(box: NonNullable<Region["box"]>, feed: FeedSetup, extent: Extent): Extent {
  const [x, y] = [box[feed.dimensions[0] ?? ""], box[feed.dimensions[1] ?? ""]];
  const left = x?.[0] ?? extent.left;
  const right = x?.[1] ?? extent.right;
  return {
    left,
    right: feed.lonlat && right < left ? right + 360 : right,
    low: y?.[0] ?? extent.low,
    high: y?.[1] ?? extent.high,
  };
}

function boxRing(box: NonNullable<Region["box"]>, feed: FeedSetup, extent: Extent): Point[] {
  const { left, right, low, high } = boxSides(box, feed, extent);
  return [
    [left, low],
    [right, low],
    [right, high],
    [left, high],
    [left, low],
  ];
}

/** Returns a closed ring. In degrees it never jumps: a longitude may be beyond 180. */
function ringOf(points: readonly (readonly number[])[], lonlat: boolean): Point[] {
  const ring = points.map((point): Point => [point[0] ?? 0, point[1] ?? 0]);
  const [first, last] = [ring[0], ring[ring.length - 1]];
  if (!first || !last) return [];
  if (first[0] !== last[0] || first[1] !== last[1]) ring.push([...first]);
  if (!lonlat) return ring;
  const unwrapped: Point[] = [];
  for (const [lon, lat] of ring) {
    const before = unwrapped[unwrapped.length - 1];
    if (!before) {
      unwrapped.push([lon, lat]);
      continue;
    }
    const near = lon + 360 * Math.round((before[0] - lon) / 360);
    const longest = Math.max(Math.abs(near - before[0]), Math.abs(lat - before[1]));
    const steps = Math.min(MOST_STEPS, Math.max(1, Math.ceil(longest / STEP_DEGREES)));
    for (let k = 1; k <= steps; k += 1) {
      unwrapped.push([before[0] + ((near - before[0]) * k) / steps, before[1] + ((lat - before[1]) * k) / steps]);
    }
  }
  return unwrapped;
}

function circleRing(center: Point, radius: number, lonlat: boolean): Point[] {
  const ring: Point[] = [];
  for (let k = 0; k <= CIRCLE_POINTS; k += 1) {
    const angle = (2 * Math.PI * k) / CIRCLE_POINTS;
    ring.push(
      lonlat
        ? goFrom(center, radius, angle)
        : [center[0] + radius * Math.sin(angle), center[1] + radius * Math.cos(angle)],
    );
  }
  return ring;
}

/** Returns the point so many metres from another on the globe; the angle is clockwise from north. */
export function goFrom([lon, lat]: Point, metres: number, angle: number): Point {
  const [phi, distance] = [(lat * Math.PI) / 180, metres / EARTH_METRES];
  const sine = Math.sin(phi) * Math.cos(distance) + Math.cos(phi) * Math.sin(distance) * Math.cos(angle);
  const turn = Math.atan2(
    Math.sin(angle) * Math.sin(distance) * Math.cos(phi),
    Math.cos(distance) - Math.sin(phi) * sine,
  );
  return [lon + (turn * 180) / Math.PI, (Math.asin(sine) * 180) / Math.PI];
}

/** Returns the distance on the globe in metres. */
export function metresBetween([lon1, lat1]: Point, [lon2, lat2]: Point): number {
  const [phi1, phi2] = [(lat1 * Math.PI) / 180, (lat2 * Math.PI) / 180];
  const [dPhi, dLambda] = [phi2 - phi1, ((lon2 - lon1) * Math.PI) / 180];
  const a = Math.sin(dPhi / 2) ** 2 + Math.cos(phi1) * Math.cos(phi2) * Math.sin(dLambda / 2) ** 2;
  return 2 * EARTH_METRES * Math.asin(Math.min(1, Math.sqrt(a)));
}

/** Returns the rings of a Polygon, a MultiPolygon or a Feature of one; references into the region itself. */
export function geojsonRings(geojson: unknown): number[][][][] {
  const shape = geojson as { type?: unknown; geometry?: unknown; coordinates?: unknown } | null;
  if (!shape || typeof shape !== "object") return [];
  if (shape.type === "Feature") return geojsonRings(shape.geometry);
  if (!Array.isArray(shape.coordinates)) return [];
  if (shape.type === "Polygon") return [shape.coordinates as number[][][]];
  return shape.type === "MultiPolygon" ? (shape.coordinates as number[][][][]) : [];
}

function geojsonPolygons(geojson: unknown, lonlat: boolean): Polygons {
  return geojsonRings(geojson).map((rings) => {
    const [outer, ...holes] = rings.map((ring) => ringOf(ring, lonlat));
    if (!outer?.[0] || !lonlat) return outer ? [outer, ...holes] : [];
    // A hole is drawn where its polygon is, also if that one goes over the antimeridian.
    const west = outer[0][0];
    return [outer, ...holes.map((hole) => shifted(hole, 360 * Math.round((west - (hole[0]?.[0] ?? west)) / 360)))];
  });
}

function shifted(ring: Point[], by: number): Point[] {
  return by ? ring.map(([x, y]): Point => [x + by, y]) : ring;
}

/** Returns the smallest extent that holds polygons, or null if there is no point. */
export function extentOf(polygons: Polygons): Extent | null {
  const extent = { left: Infinity, right: -Infinity, low: Infinity, high: -Infinity };
  for (const [x, y] of polygons.flat(2)) {
    extent.left = Math.min(extent.left, x);
    extent.right = Math.max(extent.right, x);
    extent.low = Math.min(extent.low, y);
    extent.high = Math.max(extent.high, y);
  }
  return Number.isFinite(extent.left) ? extent : null;
}
