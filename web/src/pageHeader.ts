// The line above everything: the feeds, the figures of the service, and whether the page is connected.

import { h, replace, setText } from "./dom";
import { seconds, whole } from "./format";
import type { Store } from "./store";

const WORDS = {
  running: "live",
  starting: "service starting",
  unreachable: "service away",
  disconnected: "reconnecting",
};

export class PageHeader {
  readonly element: HTMLElement;
  private readonly feeds = h("div", { class: "feeds", role: "radiogroup", "aria-label": "Feed" });
  private readonly numbers = h("span", { class: "numbers" });
  private readonly pill = h("span", { class: "pill", role: "status" });

  constructor(private readonly store: Store) {
    const brand = h("span", { class: "brand" }, h("span", { class: "mark", "aria-hidden": "true" }), h("h1", {}, "BMQ"));
    this.element = h("header", {}, brand, this.feeds, h("span", { class: "space" }), this.numbers, this.pill);
    store.on("setup", () => this.showFeeds());
    store.on("selection", () => this.showChosen());
    store.on("health", () => this.showState());
    store.on("connection", () => this.showState());
    this.showState();
  }

  private showFeeds(): void {
    const names = Object.keys(this.store.setup?.feeds ?? {});
    const button = (name: string): HTMLElement => {
      const input = h("input", { type: "radio", name: "feed", value: name, id: `feed-${name}`, onchange: () => this.store.show(name) });
      return h("label", { for: `feed-${name}` }, input, h("span", {}, name));
    };
    replace(this.feeds, ...names.map(button));
    this.feeds.hidden = names.length < 2;
    this.showChosen();
  }

  private showChosen(): void {
    for (const input of this.feeds.querySelectorAll("input")) input.checked = input.value === this.store.feed;
  }

  private showState(): void {
    const { health, connected, refusal } = this.store;
    const state = connected ? (health?.service ?? "starting") : "disconnected";
    setText(this.pill, refusal ? "refused" : WORDS[state]);
    this.pill.className = `pill ${state}`;
    const rates = health?.readings_rate === undefined ? "" : `${whole(health.readings_rate)} readings/s · ${whole(health.events_rate ?? 0)} events/s`;
    const latency = health?.latency_p50 ? ` · latency ${seconds(health.latency_p50)}` : "";
    setText(this.numbers, `${rates}${latency}`);
  }
}
