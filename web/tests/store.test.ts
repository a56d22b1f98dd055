import { describe, expect, test } from "vitest";
import type { Setup, ShownEvent, Update } from "../src/protocol";
import { MOST_EVENTS, Store } from "../src/store";

const SETUP: Setup = {
  feeds: {
    stocks: { dimensions: ["price"], lonlat: false, attributes: [], join: false },
    ships: { dimensions: ["lon", "lat"], lonlat: true, attributes: [], join: false },
    cars: { dimensions: ["x", "y"], lonlat: false, attributes: [], join: false },
  },
  tiles: "",
  tiles_credit: "",
  members_exact: true,
  read_only: false,
};

function update(more: Partial<Update>): Update {
  return { feeds: {}, queries: [], gone: [], events: [], missed: 0, dead: [], ...more };
}

function began(): Store {
  const store = new Store();
  store.begin(SETUP);
  return store;
}

function event(n: number): ShownEvent {
  return { n, kind: "border", time: n, reason: "moved", tags: {}, feed: "cars", stream: "a", value: { x: 0, y: 0 }, query: "q", sign: "+", deed: "entered" };
}

describe("streams", () => {
  test("slots beyond the first ones make the table grow, and nothing is lost", () => {
    const store = began();
    for (const slot of [0, 255, 256, 5000]) {
      const born = { [slot]: `s${slot}` };
      store.apply(update({ feeds: { ships: { slots: [slot], values: [[10], [slot / 100]], times: [1], inside: [1], born } } }), 0);
    }
    const ships = store.feeds.get("ships");
    expect([0, 255, 256, 5000].map((slot) => ships?.values[1]?.[slot])).toEqual([0, 2.55, 2.56, 50]);
    expect([...(ships?.slots.keys() ?? [])]).toEqual(["s0", "s255", "s256", "s5000"]);
    expect(ships?.n).toBe(5001);
  });

  test("a stream that crosses the antimeridian goes on in its direction", () => {
    const store = began();
    const at = (lon: number, born: Record<string, string>): Update =>
      update({ feeds: { ships: { slots: [0], values: [[lon], [0]], times: [1], inside: [0], born } } });
    store.apply(at(179, { 0: "a" }), 0);
    store.apply(at(-179, {}), 1000);
    const ships = store.feeds.get("ships");
    expect(Math.abs((ships?.fromU[0] ?? 0) - (ships?.u[0] ?? 1))).toBeLessThan(0.01);
  });

  test("a plane is laid out around its streams and regions", () => {
    const store = began();
    const definition = { kind: "border", feed: "cars", region: { box: { x: [0, 100], y: [0, 100] } } };
    const feeds = { cars: { slots: [0], values: [[500], [50]], times: [1], inside: [0], born: { 0: "a" } } };
    store.apply(update({ feeds, queries: [{ id: "q", definition, version: 1, status: "accepted", error: null }] }), 0);
    expect(store.feeds.get("cars")?.extent).toEqual({ left: 0, right: 500, low: 0, high: 100 });
    expect(store.feeds.get("cars")?.u[0]).toBeGreaterThan(0.5);
  });

  test("the history of a price is in order and bounded", () => {
    const store = began();
    for (let n = 1; n <= 4000; n += 1) {
      const born: Record<string, string> = n === 1 ? { 0: "A" } : {};
      const time = n % 100 ? n : 1;
      store.apply(update({ feeds: { stocks: { slots: [0], values: [[n]], times: [time], inside: [0], born } } }), n);
    }
    const times = store.feeds.get("stocks")?.histories.get(0)?.times ?? [];
    expect(times.length).toBeLessThanOrEqual(1800);
    expect([...times].sort((a, b) => a - b)).toEqual(times);
  });
});

describe("the rest", () => {
  test("the map of the globe is shown first", () => {
    expect(began().feed).toBe("ships");
  });

  test("a feed without streams is left for one with streams, unless somebody chose it", () => {
    const feeds = { stocks: { slots: [0], values: [[1]], times: [1], inside: [0], born: { 0: "A" } } };
    const store = began();
    store.apply(update({ feeds }), 0);
    expect(store.feed).toBe("stocks");
    const other = began();
    other.show("cars");
    other.apply(update({ feeds }), 0);
    expect(other.feed).toBe("cars");
  });

  test("counts stay when a definition changes, and a deleted query is selected no longer", () => {
    const store = began();
    const query = { id: "q", definition: {}, version: 1, status: "accepted", error: null };
    store.apply(update({ queries: [query], counts: [["q", 3, 7]] }), 0);
    store.select("q");
    store.apply(update({ queries: [{ ...query, version: 2 }] }), 0);
    expect(store.queries.get("q")).toMatchObject({ version: 2, members: 3, perMinute: 7 });
    store.apply(update({ gone: ["q"] }), 0);
    expect([store.queries.size, store.selected]).toEqual([0, null]);
  });

  test("a query that was just put stays selected until it comes", () => {
    const store = began();
    const now = performance.now();
    store.select("q");
    store.apply(update({ counts: [] }), now);
    expect(store.selected).toBe("q");
    store.apply(update({ counts: [] }), now + 60_000);
    expect(store.selected).toBeNull();
  });

  test("events are bounded, the newest stay", () => {
    const store = began();
    for (let n = 0; n < 10; n += 1) store.apply(update({ events: Array.from({ length: 400 }, (_, k) => event(n * 400 + k)) }), 0);
    expect(store.events).toHaveLength(MOST_EVENTS);
    expect(store.events[MOST_EVENTS - 1]?.n).toBe(3999);
  });

  test("after a lost connection everything begins anew", () => {
    const store = began();
    store.apply(update({ events: [event(1)], queries: [{ id: "q", definition: {}, version: 1, status: "accepted", error: null }] }), 0);
    store.begin(SETUP);
    expect([store.events.length, store.queries.size, store.connected]).toEqual([0, 0, true]);
  });
});
