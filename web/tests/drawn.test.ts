import { describe, expect, test, vi } from "vitest";
import { drawn, drawnKey, isInForce, namedStreams } from "../src/drawnQueries";
import { regionOf, type Setup } from "../src/protocol";
import { polygonsOf } from "../src/regions";
import { type Query, Store } from "../src/store";

const SQUARE = [[0, 0], [1, 0], [1, 1], [0, 0]];
const GLOBE = { dimensions: ["lon", "lat"], lonlat: true, attributes: [], join: false };
const WORLD = { left: -180, right: 180, low: -85, high: 85 };

function query(id: string, more: Partial<Query>): Query {
  const definition = { kind: "border", feed: "cars", region: { polygon: SQUARE } };
  return { id, definition, version: 1, status: "accepted", error: null, members: 0, perMinute: 0, ...more };
}

describe("a region that the service rejects", () => {
  const malformed: unknown[] = [
    5,
    [],
    {},
    { polygon: 5 },
    { polygon: [] },
    { polygon: [null] },
    { polygon: [[0, 0], [1]] },
    { polygon: [["0", "0"], [1, 0], [1, 1]] },
    { circle: true },
    { circle: { center: 5, radius: 1 } },
    { circle: { center: [0, 0], radius: "1 km" } },
    { box: "x" },
    { box: { x: 5 } },
    { box: { x: [0, "1"] } },
    { box: { x: null } },
    { geojson: "Polygon" },
    { geojson: { type: "Polygon", coordinates: [5] } },
    { geojson: { type: "Polygon", coordinates: [[null]] } },
    { geojson: { type: "MultiPolygon", coordinates: [{}] } },
    { geojson: { type: "Feature", geometry: { type: "MultiPolygon", coordinates: [[[[0, null]]]] } } },
    { box: { x: [0, 1] }, polygon: SQUARE },
  ];
  test.each(malformed.map((region) => [JSON.stringify(region), region]))("%s is not drawn", (_, region) => {
    expect(regionOf({ region })).toBeNull();
  });

  const valid: unknown[] = [
    { polygon: SQUARE },
    { polygon: SQUARE, box: null, circle: null },
    { box: { x: [null, 1], y: [0, null] } },
    { box: {} },
    { circle: { center: [0, 0], radius: 5 } },
    { geojson: { type: "Polygon", coordinates: [SQUARE] } },
    { geojson: { type: "Feature", geometry: { type: "MultiPolygon", coordinates: [[SQUARE], [SQUARE]] } } },
  ];
  test.each(valid.map((region) => [JSON.stringify(region), region]))("%s is drawn", (_, region) => {
    expect(regionOf({ region })).toBe(region);
  });

  test("a latitude far beyond the pole makes no endless ring", () => {
    const [[ring = []] = []] = polygonsOf({ polygon: [[0, 0], [1, 1e12], [2, 0]] }, GLOBE, WORLD);
    expect(ring.length).toBeLessThan(400);
  });

  test("it does not stop the updates of the page", () => {
    const store = new Store();
    const cars = { dimensions: ["x", "y"], lonlat: false, attributes: [], join: false };
    store.begin({ feeds: { cars }, tiles: "", tiles_credit: "", members_exact: true, read_only: false } satisfies Setup);
    const queries = malformed.map((region, n) => query(`q${n}`, { definition: { kind: "border", feed: "cars", region } }));
    const feeds = { cars: { slots: [0], values: [[500], [50]], times: [1], inside: [0], born: { 0: "a" } } };
    store.apply({ feeds, queries: [...queries, query("good", {})], gone: [], events: [], missed: 0, dead: [] }, 0);
    expect(store.queries.size).toBe(malformed.length + 1);
    expect(store.feeds.get("cars")?.extent).toEqual({ left: 0, right: 500, low: 0, high: 50 });
  });
});

describe("what is drawn", () => {
  test("only queries that are in force", () => {
    const states = ["accepted", "unchanged", "degraded", "rejected", "expired"].map((status) => query(status, { status }));
    expect(states.filter(isInForce).map(({ id }) => id)).toEqual(["accepted", "unchanged", "degraded"]);
    expect(drawn(states, ({ id }) => id)).toEqual(["accepted", "unchanged", "degraded"]);
  });

  test("all others if one fails", () => {
    const logged = vi.spyOn(console, "error").mockImplementation(() => undefined);
    const ids = drawn([query("a", {}), query("b", {}), query("c", {})], ({ id }) => {
      if (id === "b") throw new TypeError("no such thing");
      return id;
    });
    expect(ids).toEqual(["a", "c"]);
    expect(logged).toHaveBeenCalledOnce();
    logged.mockRestore();
  });

  test("the map is drawn anew when a query expires", () => {
    const before = drawnKey([query("q", {})], null);
    expect(drawnKey([query("q", { status: "expired" })], null)).not.toBe(before);
    expect(drawnKey([query("q", { members: 1 })], null)).not.toBe(before);
    expect(drawnKey([query("q", {})], "q")).not.toBe(before);
    expect(drawnKey([query("q", { perMinute: 9 })], null)).toBe(before);
  });

  test("a list of streams is one only if it is a list", () => {
    const streams = (value: unknown): string[] | null => namedStreams(query("q", { definition: { streams: value } }));
    expect([streams("AAPL"), streams(null), streams(["AAPL", 5])]).toEqual([null, null, ["AAPL"]]);
  });
});
