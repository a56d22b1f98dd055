// What the page knows: the sum of all updates since the stream of updates began. Knows no element of the page.

import { drawn } from "./drawnQueries";
import { DEGREES, type Extent, planeProjection, type Projection } from "./projection";
import type { DeadLetter, FeedSetup, FeedUpdate, Health, QueryUpdate, Setup, ShownEvent, Update } from "./protocol";
import { extentOf, polygonsOf } from "./regions";

export const MOST_EVENTS = 3000;
const MOST_DEAD = 200;
const ARRIVAL_MS = 8000;
const LONGEST_HISTORY = 900; // readings of a stream that the chart can show
const MOST_POINTS = 1_500_000; // of all histories together, some 24 MB

export interface Query extends QueryUpdate {
  members: number;
  perMinute: number;
}

/** The streams of one feed, by slot. */
export class FeedStreams {
  readonly ids: string[] = [];
  readonly slots = new Map<string, number>();
  n = 0;
  /** Positions on the square, for two dimensions: where a stream was, and where it is since `since`. */
  fromU = new Float64Array(256);
  fromV = new Float64Array(256);
  u = new Float64Array(256).fill(NaN);
  v = new Float64Array(256);
  since = new Float64Array(256);
  span = new Float32Array(256);
  inside = new Int32Array(256);
  values: Float64Array[];
  readonly histories = new Map<number, { times: number[]; values: number[] }>();
  projection: Projection | null;
  extent: Extent;

  constructor(
    readonly name: string,
    readonly setup: FeedSetup,
  ) {
    this.values = setup.dimensions.map(() => new Float64Array(256).fill(NaN));
    this.projection = setup.lonlat ? DEGREES : null;
    this.extent = setup.lonlat
      ? { left: -180, right: 180, low: -85, high: 85 }
      : { left: Infinity, right: -Infinity, low: Infinity, high: -Infinity };
  }

  apply(update: FeedUpdate, now: number): void {
    for (const [slot, id] of Object.entries(update.born)) {
      this.ids[Number(slot)] = id;
      this.slots.set(id, Number(slot));
    }
    const highest = update.slots.reduce((most, slot) => Math.max(most, slot), -1) + 1;
    this.grow(highest);
    this.n = Math.max(this.n, highest);
    update.values.forEach((column, d) => {
      const kept = this.values[d];
      update.slots.forEach((slot, i) => kept && (kept[slot] = column[i] ?? NaN));
    });
    update.slots.forEach((slot, i) => (this.inside[slot] = update.inside[i] ?? 0));
    if (this.setup.dimensions.length === 2) this.place(update, now);
    if (this.setup.dimensions.length === 1) this.remember(update);
  }

  slotOf(id: string): number | undefined {
    return this.slots.get(id);
  }

  /** Returns what holds the regions and all streams of a plane; null if there is nothing. */
  measure(regions: Extent | null): Extent | null {
    const [xs, ys] = this.values;
    const extent = regions ? { ...regions } : { left: Infinity, right: -Infinity, low: Infinity, high: -Infinity };
    for (let slot = 0; slot < this.n; slot += 1) {
      const [x, y] = [xs?.[slot] ?? NaN, ys?.[slot] ?? NaN];
      if (Number.isNaN(x)) continue;
      extent.left = Math.min(extent.left, x);
      extent.right = Math.max(extent.right, x);
      extent.low = Math.min(extent.low, y);
      extent.high = Math.max(extent.high, y);
    }
    if (!Number.isFinite(extent.left)) return null;
    if (extent.right === extent.left && extent.high === extent.low) {
      extent.left -= 50;
      extent.right += 50;
      extent.low -= 50;
      extent.high += 50;
    }
    return extent;
  }

  /** Lays a plane into the map, once it is known how large it is. */
  layOut(regions: Extent | null): void {
    if (this.projection || this.setup.dimensions.length !== 2) return;
    const extent = this.measure(regions);
    if (!extent) return;
    this.extent = extent;
    this.projection = planeProjection(extent);
    this.place({ slots: [...Array(this.n).keys()], values: [], times: [], inside: [], born: {} }, 0);
  }

  private place(update: FeedUpdate, now: number): void {
    const { projection } = this;
    if (!projection) return;
    const [xs, ys] = this.values;
    for (const slot of update.slots) {
      const [x, y] = [xs?.[slot] ?? NaN, ys?.[slot] ?? NaN];
      if (Number.isNaN(x)) continue;
      const [u, v] = projection.toSquare(x, y);
      const isNew = Number.isNaN(this.u[slot] ?? NaN);
      if (!isNew && u === this.u[slot] && v === this.v[slot]) continue;
      // Over the antimeridian a stream goes on, and not back around the world.
      const before = isNew ? u : (this.u[slot] ?? u);
      this.fromU[slot] = this.setup.lonlat && Math.abs(before - u) > 0.5 ? before + Math.sign(u - before) : before;
      this.fromV[slot] = isNew ? v : (this.v[slot] ?? v);
      this.span[slot] = isNew ? 0 : Math.min(2500, Math.max(120, now - (this.since[slot] ?? now)));
      this.u[slot] = u;
      this.v[slot] = v;
      this.since[slot] = now;
    }
  }

  private remember(update: FeedUpdate): void {
    const longest = Math.max(60, Math.min(LONGEST_HISTORY, Math.floor(MOST_POINTS / Math.max(1, this.n))));
    update.slots.forEach((slot, i) => {
      let history = this.histories.get(slot);
      if (!history) this.histories.set(slot, (history = { times: [], values: [] }));
      const [time, value] = [(update.times[i] ?? 0) / 1000, update.values[0]?.[i] ?? NaN];
      if (time <= (history.times[history.times.length - 1] ?? 0)) return;
      history.times.push(time);
      history.values.push(value);
      if (history.times.length > 2 * longest) {
        history.times.splice(0, history.times.length - longest);
        history.values.splice(0, history.values.length - longest);
      }
    });
  }

  private grow(n: number): void {
    if (n <= this.u.length) return;
    const size = Math.max(n, 2 * this.u.length);
    const grown = (old: Float64Array, fill: number): Float64Array<ArrayBuffer> => {
      const column = new Float64Array(size).fill(fill);
      column.set(old);
      return column;
    };
    this.fromU = grown(this.fromU, 0);
    this.fromV = grown(this.fromV, 0);
    this.u = grown(this.u, NaN);
    this.v = grown(this.v, 0);
    this.since = grown(this.since, 0);
    this.values = this.values.map((column) => grown(column, NaN));
    const [span, inside] = [new Float32Array(size), new Int32Array(size)];
    span.set(this.span);
    inside.set(this.inside);
    this.span = span;
    this.inside = inside;
  }
}

type Topic = "setup" | "streams" | "queries" | "counts" | "events" | "health" | "selection" | "connection";

export class Store {
  setup: Setup | null = null;
  readonly feeds = new Map<string, FeedStreams>();
  readonly queries = new Map<string, Query>();
  events: ShownEvent[] = [];
  dead: DeadLetter[] = [];
  missed = 0;
  health: Health | null = null;
  connected = false;
  refusal = ""; // why the server refuses this browser
  feed = "";
  selected: string | null = null;
  private selectedAt = 0;
  private wasThere = false;
  private isChosen = false;
  private readonly listeners = new Map<Topic, Set<() => void>>();
  private readonly eventListeners = new Set<(events: ShownEvent[]) => void>();

  on(topic: Topic, listener: () => void): void {
    const listeners = this.listeners.get(topic) ?? new Set();
    this.listeners.set(topic, listeners.add(listener));
  }

  onEvents(listener: (events: ShownEvent[]) => void): void {
    this.eventListeners.add(listener);
  }

  emit(topic: Topic): void {
    for (const listener of this.listeners.get(topic) ?? []) listener();
  }

  /** Begins anew: the server sends everything once more after a lost connection. */
  begin(setup: Setup): void {
    this.setup = setup;
    this.queries.clear();
    this.feeds.clear();
    this.events = [];
    this.dead = [];
    this.missed = 0;
    for (const [name, feed] of Object.entries(setup.feeds)) this.feeds.set(name, new FeedStreams(name, feed));
    if (!this.feeds.has(this.feed)) this.feed = preferred(setup);
    this.setConnected(true);
    this.emit("setup");
  }

  apply(update: Update, now: number): void {
    for (const [name, changed] of Object.entries(update.feeds)) this.feeds.get(name)?.apply(changed, now);
    for (const query of [...update.queries].reverse()) {
      const known = this.queries.get(query.id);
      this.queries.set(query.id, { ...query, members: known?.members ?? 0, perMinute: known?.perMinute ?? 0 });
    }
    for (const id of update.gone) this.queries.delete(id);
    for (const feed of this.feeds.values()) if (!feed.projection) feed.layOut(this.regionExtent(feed));
    for (const [id, members, perMinute] of update.counts ?? []) {
      const query = this.queries.get(id);
      if (query) [query.members, query.perMinute] = [members, perMinute];
    }
    if (update.events.length) {
      this.events.push(...update.events);
      if (this.events.length > MOST_EVENTS) this.events.splice(0, this.events.length - MOST_EVENTS);
    }
    this.missed += update.missed;
    if (update.dead.length) this.dead = [...this.dead, ...update.dead].slice(-MOST_DEAD);
    if (update.health) this.health = update.health;
    this.keepSelection(now);
    this.leaveEmptyFeed();
    if (update.queries.length || update.gone.length) this.emit("queries");
    if (Object.keys(update.feeds).length) this.emit("streams");
    if (update.events.length) {
      for (const listener of this.eventListeners) listener(update.events);
      this.emit("events");
    }
    if (update.counts) this.emit("counts");
    if (update.health) this.emit("health");
  }

  setConnected(connected: boolean): void {
    this.connected = connected;
    if (connected) this.refusal = "";
    this.emit("connection");
  }

  setRefusal(message: string): void {
    this.refusal = message;
    this.emit("connection");
  }

  select(id: string | null): void {
    if (this.selected === id) return;
    this.selected = id;
    this.selectedAt = performance.now();
    this.wasThere = id !== null && this.queries.has(id);
    this.emit("selection");
  }

  show(feed: string): void {
    this.isChosen = true;
    if (this.feed === feed) return;
    this.feed = feed;
    this.emit("selection");
  }

  /** The feed that the stage shows. */
  get current(): FeedStreams | undefined {
    return this.feeds.get(this.feed);
  }

  queriesOf(feed: string): Query[] {
    return [...this.queries.values()].filter((query) => (query.definition as { feed?: unknown } | null)?.feed === feed);
  }

  /** A query that was just put comes with one of the next updates; one that was there and is gone is deleted. */
  private keepSelection(now: number): void {
    if (this.selected === null) return;
    if (this.queries.has(this.selected)) this.wasThere = true;
    else if (this.wasThere || now - this.selectedAt > ARRIVAL_MS) this.select(null);
  }

  /** Until somebody chooses a feed, the page shows one that has streams. */
  private leaveEmptyFeed(): void {
    if (this.isChosen || !this.setup || this.current?.n !== 0) return;
    const filled = Object.entries(this.setup.feeds).filter(([name]) => this.feeds.get(name)?.n);
    const better = preferred({ ...this.setup, feeds: Object.fromEntries(filled) });
    if (!better) return;
    this.feed = better;
    this.emit("selection");
  }

  regionExtent(feed: FeedStreams): Extent | null {
    if (feed.setup.dimensions.length !== 2 || feed.setup.lonlat) return null;
    const nowhere = { left: NaN, right: NaN, low: NaN, high: NaN };
    const polygons = drawn(this.queriesOf(feed.name), (_, region) => polygonsOf(region, feed.setup, nowhere)).flat();
    return extentOf(polygons.filter((rings) => rings.flat(2).every(Number.isFinite)));
  }
}

/** A map is what most people come for; degrees before a plane, and then a chart. */
function preferred(setup: Setup): string {
  const rank = ([, feed]: [string, FeedSetup]): number =>
    feed.dimensions.length === 2 ? (feed.lonlat ? 0 : 1) : feed.dimensions.length === 1 ? 2 : 3;
  return Object.entries(setup.feeds).sort((a, b) => rank(a) - rank(b))[0]?.[0] ?? "";
}
