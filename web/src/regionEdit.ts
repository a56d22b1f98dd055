// Handles of a region: the points that a person drags, or moves with the arrow keys, and the region after that. Pure.

import { type Extent, roundTo } from "./projection";
import type { FeedSetup, Region } from "./protocol";
import { boxSides, geojsonRings, goFrom, metresBetween, type Point } from "./regions";

export interface Handle {
  name: string;
  at: Point;
  /** Returns the region after the handle was moved to a point; a middle becomes a vertex there. */
  move(to: Point): Region;
  /** Returns the region without this vertex; absent where it cannot be removed. */
  remove?: () => Region;
  /** Of a middle: the two ends of its side. After a move the vertex is the next of the handles. */
  side?: [Point, Point];
}

export function handlesOf(region: Region, feed: FeedSetup, extent: Extent): Handle[] {
  if (feed.dimensions.length === 1) return intervalHandles(region, feed.dimensions[0] ?? "", extent);
  if (region.box) return boxHandles(region.box, feed, extent);
  if (region.polygon) return ringHandles(region.polygon, "", feed.lonlat, (ring) => ({ polygon: ring }));
  if (region.circle) return circleHandles(region.circle, feed);
  if (region.geojson) return geojsonHandles(region.geojson, feed.lonlat);
  return [];
}

function intervalHandles(region: Region, dimension: string, extent: Extent): Handle[] {
  const interval = region.box?.[dimension];
  if (!interval) return [];
  return ["lower border", "upper border"].map((name, k) => ({
    name,
    at: [0, interval[k] ?? (k ? extent.high : extent.low)],
    move: ([, value]) => {
      const moved = [...interval];
      moved[k] = value;
      return { box: { ...region.box, [dimension]: moved as [number | null, number | null] } };
    },
  }));
}

function boxHandles(box: NonNullable<Region["box"]>, feed: FeedSetup, extent: Extent): Handle[] {
  const [xName, yName] = [feed.dimensions[0] ?? "", feed.dimensions[1] ?? ""];
  const sides = boxSides(box, feed, extent);
  const corners = [
    { name: "south-west corner", x: 0, y: 0 },
    { name: "south-east corner", x: 1, y: 0 },
    { name: "north-east corner", x: 1, y: 1 },
    { name: "north-west corner", x: 0, y: 1 },
  ] as const;
  return corners.map(({ name, x, y }) => ({
    name,
    at: [x ? sides.right : sides.left, y ? sides.high : sides.low],
    move: (to) => {
      // A side that was open stays open in its other end.
      const along: [number | null, number | null] = [...(box[xName] ?? [null, null])] as [number | null, number | null];
      const up: [number | null, number | null] = [...(box[yName] ?? [null, null])] as [number | null, number | null];
      along[x] = feed.lonlat ? wrap(to[0]) : to[0];
      up[y] = to[1];
      return { box: { ...box, [xName]: along, [yName]: up } };
    },
  }));
}

function circleHandles(circle: { center: number[]; radius: number }, feed: FeedSetup): Handle[] {
  const center = circle.center as Point;
  const rim: Point = feed.lonlat
    ? goFrom(center, circle.radius, Math.PI / 2)
    : [center[0] + circle.radius, center[1]];
  return [
    {
      name: "centre",
      at: center,
      move: (to) => ({ circle: { center: [feed.lonlat ? wrap(to[0]) : to[0], to[1]], radius: circle.radius } }),
    },
    {
      name: "rim",
      at: rim,
      move: (to) => ({ circle: { center, radius: radiusTo(center, to, feed.lonlat) } }),
    },
  ];
}

export function radiusTo(center: Point, rim: Point, lonlat: boolean): number {
  const radius = lonlat ? metresBetween(center, rim) : Math.hypot(rim[0] - center[0], rim[1] - center[1]);
  return Number(radius.toPrecision(6));
}

/** Returns a handle for each vertex of a ring, and behind it one for the middle of the side that begins there. */
function ringHandles(ring: number[][], where: string, lonlat: boolean, build: (ring: [number, number][]) => Region): Handle[] {
  const points = ring as [number, number][];
  const [first, last] = [points[0], points[points.length - 1]];
  const closed = points.length > 1 && first && last && first[0] === last[0] && first[1] === last[1];
  const vertices = closed ? points.slice(0, -1) : points;
  const n = vertices.length;
  const rebuilt = (changed: [number, number][]): Region =>
    build(closed && changed[0] ? [...changed, [...changed[0]]] : changed);
  const written = ([x, y]: Point): Point => [lonlat ? wrap(x) : x, y];
  return vertices.flatMap((at, k): Handle[] => {
    const next = vertices[(k + 1) % n] ?? at;
    const far: Point = lonlat ? [next[0] + 360 * Math.round((at[0] - next[0]) / 360), next[1]] : next;
    return [
      {
        name: `${where}vertex ${k + 1} of ${n}`,
        at,
        move: (to) => rebuilt(vertices.map((point, i) => (i === k ? written(to) : point))),
        ...(n > 3 ? { remove: () => rebuilt(vertices.filter((_, i) => i !== k)) } : {}),
      },
      {
        name: `${where}middle behind vertex ${k + 1} of ${n}`,
        at: [(at[0] + far[0]) / 2, (at[1] + far[1]) / 2],
        move: (to) => rebuilt([...vertices.slice(0, k + 1), written(to), ...vertices.slice(k + 1)]),
        side: [at, far],
      },
    ];
  });
}

function geojsonHandles(geojson: Record<string, unknown>, lonlat: boolean): Handle[] {
  return geojsonRings(geojson).flatMap((rings, p) =>
    rings.flatMap((ring, r) =>
      ringHandles(ring, r ? `hole ${r}, ` : "", lonlat, (moved) => {
        const copy = structuredClone(geojson);
        const target = geojsonRings(copy)[p];
        if (target) target[r] = moved;
        return { geojson: copy };
      }),
    ),
  );
}

/** Returns the interval between two values of a drag, as an axis with so much per pixel writes them; null: no interval. */
export function intervalBetween(from: number, to: number, pixel: number): [number, number] | null {
  const [low, high] = [roundTo(Math.min(from, to), pixel), roundTo(Math.max(from, to), pixel)];
  return low < high ? [low, high] : null;
}

/** Returns a longitude between -180 and 180. */
export function wrap(lon: number): number {
  return lon >= -180 && lon <= 180 ? lon : ((((lon + 180) % 360) + 360) % 360) - 180;
}
