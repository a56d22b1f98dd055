import { describe, expect, test } from "vitest";
import { DEGREES, planeProjection, roundTo } from "../src/projection";
import type { FeedSetup, Region } from "../src/protocol";
import { type Handle, handlesOf, intervalBetween, wrap } from "../src/regionEdit";
import { extentOf, goFrom, intervalOf, metresBetween, polygonsOf } from "../src/regions";

const PLANE: FeedSetup = { dimensions: ["x", "y"], lonlat: false, attributes: [], join: false };
const GLOBE: FeedSetup = { dimensions: ["lon", "lat"], lonlat: true, attributes: [], join: false };
const LINE: FeedSetup = { dimensions: ["price"], lonlat: false, attributes: [], join: false };
const WORLD = { left: -180, right: 180, low: -85, high: 85 };

function extent(region: Region, feed: FeedSetup): number[] {
  const found = extentOf(polygonsOf(region, feed, WORLD));
  return found ? [found.left, found.right, found.low, found.high].map((x) => Math.round(x * 1000) / 1000) : [];
}

describe("what is drawn of a region", () => {
  test("a box over the antimeridian goes on beyond 180 degrees", () => {
    expect(extent({ box: { lon: [170, -170], lat: [-10, 10] } }, GLOBE)).toEqual([170, 190, -10, 10]);
  });

  test("an open end of a box goes to the end of the map", () => {
    expect(extent({ box: { x: [null, 5], y: [0, null] } }, PLANE)).toEqual([-180, 5, 0, 85]);
  });

  test("a polygon over the antimeridian never jumps back", () => {
    const [ring] = polygonsOf({ polygon: [[178, -20], [-178, -20], [-178, -10], [178, -10]] }, GLOBE, WORLD)[0] ?? [];
    const jumps = (ring ?? []).slice(1).map((point, i) => Math.abs(point[0] - (ring?.[i]?.[0] ?? 0)));
    expect(Math.max(...jumps)).toBeLessThanOrEqual(4);
    expect(extent({ polygon: [[178, -20], [-178, -20], [-178, -10], [178, -10]] }, GLOBE)).toEqual([178, 182, -20, -10]);
  });

  test("holes stay in their polygon, also over the antimeridian", () => {
    const coordinates = [
      [[170, 0], [-170, 0], [-170, 20], [170, 20], [170, 0]],
      [[-178, 5], [-174, 5], [-174, 9], [-178, 9], [-178, 5]],
    ];
    const [rings] = polygonsOf({ geojson: { type: "Polygon", coordinates } }, GLOBE, WORLD);
    expect(rings).toHaveLength(2);
    expect((rings?.[1] ?? []).every(([lon]) => lon >= 182 && lon <= 186)).toBe(true);
  });

  test("a MultiPolygon and a Feature are drawn, and what is no area is not", () => {
    const square = [[[0, 0], [1, 0], [1, 1], [0, 0]]];
    const multi = { type: "MultiPolygon", coordinates: [square, square] };
    expect(polygonsOf({ geojson: multi }, PLANE, WORLD)).toHaveLength(2);
    expect(polygonsOf({ geojson: { type: "Feature", geometry: multi } }, PLANE, WORLD)).toHaveLength(2);
    expect(polygonsOf({ geojson: { type: "Point", coordinates: [0, 0] } }, PLANE, WORLD)).toEqual([]);
    expect(polygonsOf({ geojson: { type: "Polygon" } }, PLANE, WORLD)).toEqual([]);
  });

  test("every point of a circle on the globe is as far from the centre as its radius", () => {
    const [[ring = []] = []] = polygonsOf({ circle: { center: [179, 60], radius: 300_000 } }, GLOBE, WORLD);
    for (const point of ring) expect(metresBetween([179, 60], point)).toBeCloseTo(300_000, 0);
  });

  test("an interval with an open end is infinite there", () => {
    expect(intervalOf({ box: { price: [40, null] } }, "price")).toEqual([40, Infinity]);
    expect(intervalOf({ polygon: [] }, "price")).toBeNull();
  });
});

describe("handles", () => {
  const named = (region: Region, name: string, feed = PLANE): Handle | undefined => handlesOf(region, feed, WORLD).find((one) => one.name === name);

  test("a dragged vertex changes that vertex alone, and a closed ring stays closed", () => {
    const polygon: [number, number][] = [[0, 0], [9, 0], [9, 9], [0, 0]];
    const [first, second] = [named({ polygon }, "vertex 1 of 3"), named({ polygon }, "vertex 2 of 3")];
    expect(first?.move([1, 1])).toEqual({ polygon: [[1, 1], [9, 0], [9, 9], [1, 1]] });
    expect(second?.move([8, 1])).toEqual({ polygon: [[0, 0], [8, 1], [9, 9], [0, 0]] });
    expect(second?.remove).toBeUndefined();
  });

  test("a vertex of four can be removed, also the first one of a closed ring", () => {
    expect(named({ polygon: [[0, 0], [9, 0], [9, 9], [0, 9]] }, "vertex 2 of 4")?.remove?.()).toEqual({ polygon: [[0, 0], [9, 9], [0, 9]] });
    const closed: Region = { polygon: [[0, 0], [9, 0], [9, 9], [0, 9], [0, 0]] };
    expect(named(closed, "vertex 1 of 4")?.remove?.()).toEqual({ polygon: [[9, 0], [9, 9], [0, 9], [9, 0]] });
  });

  test("the middle of a side becomes a vertex between its ends, and the next handle", () => {
    const polygon: [number, number][] = [[0, 0], [8, 0], [8, 8]];
    const handles = handlesOf({ polygon }, PLANE, WORLD);
    const middle = handles[1];
    expect(handles.map((one) => one.name)[1]).toBe("middle behind vertex 1 of 3");
    expect(middle?.at).toEqual([4, 0]);
    const moved = middle?.move([4, -2]) ?? {};
    expect(moved).toEqual({ polygon: [[0, 0], [4, -2], [8, 0], [8, 8]] });
    expect(handlesOf(moved, PLANE, WORLD)[2]).toMatchObject({ name: "vertex 2 of 4", at: [4, -2] });
  });

  test("the middle of the last side goes behind the last vertex, and a closed ring stays closed", () => {
    const polygon: [number, number][] = [[0, 0], [8, 0], [8, 8], [0, 0]];
    const last = named({ polygon }, "middle behind vertex 3 of 3");
    expect(last?.at).toEqual([4, 4]);
    expect(last?.move([3, 5])).toEqual({ polygon: [[0, 0], [8, 0], [8, 8], [3, 5], [0, 0]] });
  });

  test("the middle of a side over the antimeridian lies on it, and its longitude is one of the service", () => {
    const polygon: [number, number][] = [[178, 0], [-178, 0], [-178, 4], [178, 4]];
    const middle = named({ polygon }, "middle behind vertex 1 of 4", GLOBE);
    expect(middle?.at).toEqual([180, 0]);
    expect(middle?.move([181, -1])).toEqual({ polygon: [[178, 0], [-179, -1], [-178, 0], [-178, 4], [178, 4]] });
  });

  test("a corner of a box moves two sides, and an open end stays open", () => {
    const corners = handlesOf({ box: { x: [0, null], y: [0, 5] } }, PLANE, WORLD);
    expect(corners[0]?.move([1, 2])).toEqual({ box: { x: [1, null], y: [2, 5] } });
  });

  test("the centre of a circle moves it, the rim changes its radius", () => {
    const [centre, rim] = handlesOf({ circle: { center: [0, 0], radius: 5 } }, PLANE, WORLD);
    expect(centre?.move([1, 2])).toEqual({ circle: { center: [1, 2], radius: 5 } });
    expect(rim?.move([0, 3])).toEqual({ circle: { center: [0, 0], radius: 3 } });
  });

  test("a vertex of a hole moves in the hole alone, and the definition that stands is untouched", () => {
    const geojson = {
      type: "Polygon",
      coordinates: [
        [[0, 0], [9, 0], [9, 9], [0, 0]],
        [[5, 1], [6, 1], [6, 2], [5, 1]],
      ],
    };
    const before = structuredClone(geojson);
    const handle = handlesOf({ geojson }, PLANE, WORLD).find(({ name }) => name === "hole 1, vertex 2 of 3");
    const moved = handle?.move([7, 1]) as { geojson: { coordinates: number[][][] } };
    expect(moved.geojson.coordinates[1]).toEqual([[5, 1], [7, 1], [6, 2], [5, 1]]);
    expect(moved.geojson.coordinates[0]).toEqual(before.coordinates[0]);
    expect(geojson).toEqual(before);
  });

  test("an interval has its two borders", () => {
    const [lower, upper] = handlesOf({ box: { price: [40, 50] } }, LINE, WORLD);
    expect(lower?.move([0, 41])).toEqual({ box: { price: [41, 50] } });
    expect(upper?.move([0, 51])).toEqual({ box: { price: [40, 51] } });
  });

  test("a band has its borders in order, with the digits that a pixel is worth", () => {
    expect(intervalBetween(50.123, 40.987, 0.5)).toEqual([40.99, 50.12]);
    expect(intervalBetween(40, 50, 1)).toEqual([40, 50]);
  });

  test("a press without a drag is no band", () => {
    expect(intervalBetween(40.0001, 40.0002, 0.5)).toBeNull();
    expect(intervalBetween(40, 40, 1)).toBeNull();
  });

  test("a longitude beyond the antimeridian is written as the service reads it", () => {
    expect([190, -190, 180, -180, 540].map(wrap)).toEqual([-170, 170, 180, -180, -180]);
  });
});

describe("positions on the square", () => {
  test("degrees come back", () => {
    for (const [lon, lat] of [[0, 0], [-179.5, 80], [179, -60]] as const) {
      const [x, y] = DEGREES.fromSquare(...DEGREES.toSquare(lon, lat));
      expect([x, y].map((n) => Number(n.toFixed(9)))).toEqual([lon, lat]);
    }
  });

  test("a plane lies in the middle, with up as up", () => {
    const plane = planeProjection({ left: 0, right: 1000, low: 0, high: 500 });
    expect(plane.toSquare(500, 250)).toEqual([0.5, 0.5]);
    expect(plane.toSquare(500, 500)[1]).toBeLessThan(0.5);
    expect(plane.fromSquare(...plane.toSquare(123, 456)).map((n) => Number(n.toFixed(6)))).toEqual([123, 456]);
  });

  test("the point due east is east", () => {
    const [lon, lat] = goFrom([0, 0], 111_195, Math.PI / 2);
    expect([Number(lon.toFixed(3)), Number(lat.toFixed(3))]).toEqual([1, 0]);
  });

  test("a click is written with the digits that a pixel is worth", () => {
    expect(roundTo(12.3456789, 0.02)).toBe(12.346);
    expect(roundTo(1234.56, 40)).toBe(1235);
    expect(roundTo(0.1, 0)).toBe(0.1);
  });
});
