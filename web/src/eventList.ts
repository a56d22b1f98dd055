// The events that the list shows: those that fit its filter, each once, in the order of the server's numbers. Knows no
// element of the page. Events come from two sides, as updates and as answers to a filter, and the two overlap.

import type { ShownEvent } from "./protocol";

export interface EventFilter {
  query: string;
  stream: string;
  kind: string;
  feed: string;
}

export const MOST_ROWS = 200;

export class EventList {
  /** The events, the newest last. */
  shown: readonly ShownEvent[] = [];
  /** Rises when the server numbers its events anew: an answer of before does not belong to the events of now. */
  generation = 0;
  private newest = 0; // of all that came, also if it does not fit
  private heldAt: number | null = null;
  private isOutdated = false;

  constructor(readonly filter: EventFilter = { query: "", stream: "", kind: "", feed: "" }) {}

  get isHeld(): boolean {
    return this.heldAt !== null;
  }

  /** Begins anew after a connection. A list that is held stays as it is until it goes on. */
  begin(): void {
    this.generation += 1;
    this.newest = 0;
    if (this.isHeld) this.isOutdated = true;
    else this.shown = [];
  }

  /** Stops the list: from now on no newer event comes into it. */
  hold(): void {
    this.heldAt = this.newest;
  }

  goOn(): void {
    this.heldAt = null;
    if (this.isOutdated) this.shown = [];
    this.isOutdated = false;
  }

  /** Leaves out what no longer fits, and adds what the page knows and the filter left out before. */
  refilter(known: readonly ShownEvent[]): void {
    this.shown = this.shown.filter((event) => this.fits(event));
    this.add(known);
  }

  /** Adds events that fit; returns whether there was one. */
  add(events: readonly ShownEvent[]): boolean {
    this.newest = events.reduce((most, { n }) => Math.max(most, n), this.newest);
    if (this.isOutdated) return false;
    const there = new Set(this.shown.map(({ n }) => n));
    const added = events.filter((event) => !there.has(event.n) && event.n <= (this.heldAt ?? Infinity) && this.fits(event));
    if (!added.length) return false;
    this.shown = [...this.shown, ...added].sort((a, b) => a.n - b.n).slice(-MOST_ROWS);
    return true;
  }

  private fits({ query, stream, kind, feed }: ShownEvent): boolean {
    const { filter } = this;
    if (filter.feed && !feed.split(" ~ ").includes(filter.feed)) return false;
    return query.includes(filter.query) && stream.includes(filter.stream) && (!filter.kind || kind === filter.kind);
  }
}
