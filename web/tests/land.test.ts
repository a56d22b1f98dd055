import { feature, mesh } from "topojson-client";
import { expect, test } from "vitest";
import world from "world-atlas/countries-50m.json";
import { pieces, unwrapped, unwrappedLand } from "../src/land";

test("a ring over the antimeridian goes on, one that stays is unchanged", () => {
  expect(unwrapped([[170, 0], [-170, 0], [-170, 9], [170, 9], [170, 0]])).toEqual([[170, 0], [190, 0], [190, 9], [170, 9], [170, 0]]);
  expect(unwrapped([[0, 0], [9, 0], [9, 9], [0, 0]])).toEqual([[0, 0], [9, 0], [9, 9], [0, 0]]);
});

test("no coast of the map jumps around the world, but for the one around the pole", () => {
  const topology = world as unknown as Parameters<typeof feature>[0];
  const land = unwrappedLand(feature(topology, topology.objects["countries"] as never) as unknown as GeoJSON.FeatureCollection);
  const jumping = land.features.filter(({ geometry }) => {
    const polygons = geometry.type === "Polygon" ? [geometry.coordinates] : geometry.type === "MultiPolygon" ? geometry.coordinates : [];
    return polygons.flat().some((ring) => ring.some((point, i) => i > 0 && Math.abs((point[0] ?? 0) - (ring[i - 1]?.[0] ?? 0)) > 180));
  });
  expect(jumping.map(({ properties }) => properties?.["name"]).filter((name) => name !== "Antarctica")).toEqual([]);
});

test("no border is a line around the world", () => {
  const topology = world as never;
  const lines = mesh(topology, (world as { objects: Record<string, unknown> }).objects["countries"] as never);
  const steps = lines.coordinates.flatMap(pieces).flatMap((line) => line.slice(1).map((point, i) => Math.abs((point[0] ?? 0) - (line[i]?.[0] ?? 0))));
  expect(steps.reduce((most, step) => Math.max(most, step), 0)).toBeLessThanOrEqual(180);
});
