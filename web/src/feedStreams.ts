// The streams of one feed: where they are, where they were, and the history of a price. Knows no element of the page.

import { DEGREES, type Extent, planeProjection, type Projection } from "./projection";
import type { FeedSetup, FeedUpdate } from "./protocol";

const LONGEST_HISTORY = 900; // readings of a stream that the chart can show
const MOST_POINTS = 1_500_000; // of all histories together, some 24 MB

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
