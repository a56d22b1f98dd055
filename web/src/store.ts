// What the page knows: the sum of all updates since the stream of updates began. Knows no element of the page.

import { drawn } from "./drawnQueries";
import { FeedStreams } from "./feedStreams";
import type { Extent } from "./projection";
import type { DeadLetter, FeedSetup, Health, QueryUpdate, Setup, ShownEvent, Update } from "./protocol";
import { extentOf, polygonsOf } from "./regions";

export const MOST_EVENTS = 3000;
const MOST_DEAD = 200;
const ARRIVAL_MS = 8000;

export interface Query extends QueryUpdate {
  members: number;
  perMinute: number;
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
    this.take(update, now);
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

  private take(update: Update, now: number): void {
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
