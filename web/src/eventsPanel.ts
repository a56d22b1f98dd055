// The list of events, the newest first, with its filter.

import { fetchEvents } from "./connection";
import { h, replace, setText } from "./dom";
import { clock, short } from "./format";
import type { ShownEvent } from "./protocol";
import type { Store } from "./store";

const MOST_ROWS = 200;

export class EventsPanel {
  readonly element: HTMLElement;
  private readonly list = h("ol", { class: "events", "aria-label": "Events, the newest first" });
  private readonly note = h("p", { class: "note" });
  private readonly filter = { query: "", stream: "", kind: "", feed: "" };
  private readonly pause: HTMLButtonElement;
  private readonly own: HTMLButtonElement;
  private paused = false;
  private isEmpty = true;

  constructor(private readonly store: Store) {
    const field = (name: "query" | "stream", label: string): HTMLInputElement =>
      h("input", {
        type: "search",
        placeholder: label,
        "aria-label": `Only events whose ${name} contains`,
        oninput: (event: InputEvent) => this.setFilter(name, (event.target as HTMLInputElement).value),
      });
    const kinds = ["border", "transition", "match", "select", "band_join", "window_join"];
    const kind = h(
      "select",
      {
        "aria-label": "Only events of this kind",
        onchange: (event: Event) => this.setFilter("kind", (event.target as HTMLSelectElement).value),
      },
      h("option", { value: "" }, "Every kind"),
      ...kinds.map((name) => h("option", { value: name }, name)),
    );
    this.pause = h("button", { type: "button", "aria-pressed": "false", onclick: () => this.setPaused(!this.paused) }, "Hold");
    this.own = h("button", { type: "button", "aria-pressed": "true", onclick: () => this.setOwn(!this.isOwn) }, "This feed");
    this.element = h(
      "section",
      { class: "panel-body" },
      h("div", { class: "filter" }, field("query", "Query"), field("stream", "Stream"), kind, this.own, this.pause),
      this.note,
      this.list,
    );
    store.onEvents((events) => this.add(events));
    store.on("setup", () => {
      this.own.hidden = store.feeds.size < 2;
      this.filter.feed = this.isOwn ? store.feed : "";
      this.clear();
    });
    store.on("selection", () => {
      this.followFeed();
      this.markSelected();
    });
    this.clear();
  }

  private get isOwn(): boolean {
    return this.own.getAttribute("aria-pressed") === "true";
  }

  /** Lists the events of the feed that the stage shows, or of every feed. */
  private setOwn(isOwn: boolean): void {
    this.own.setAttribute("aria-pressed", String(isOwn));
    this.followFeed();
  }

  private followFeed(): void {
    const feed = this.isOwn ? this.store.feed : "";
    if (feed === this.filter.feed) return;
    this.filter.feed = feed;
    void this.reload();
  }

  private setPaused(paused: boolean): void {
    this.paused = paused;
    this.pause.setAttribute("aria-pressed", String(paused));
    if (!paused) void this.reload();
  }

  private setFilter(name: "query" | "stream" | "kind", value: string): void {
    this.filter[name] = value;
    void this.reload();
  }

  private async reload(): Promise<void> {
    const wanted = { ...this.filter };
    const events = await fetchEvents(wanted);
    if (JSON.stringify(wanted) !== JSON.stringify(this.filter)) return;
    this.clear();
    this.add(events);
  }

  private clear(): void {
    this.isEmpty = true;
    const { feed: _, ...others } = this.filter;
    const filtered = Object.values(others).some(Boolean);
    replace(this.list, h("li", { class: "empty" }, filtered ? "No event fits the filter yet." : "No event yet. An event comes when a stream crosses a border."));
  }

  private fits({ query, stream, kind, feed }: ShownEvent): boolean {
    const { filter } = this;
    if (filter.feed && !feed.split(" ~ ").includes(filter.feed)) return false;
    return query.includes(filter.query) && stream.includes(filter.stream) && (!filter.kind || kind === filter.kind);
  }

  private add(events: ShownEvent[]): void {
    if (this.paused) return;
    const fitting = events.filter((event) => this.fits(event)).slice(-MOST_ROWS);
    if (!fitting.length) return;
    if (this.isEmpty) replace(this.list);
    this.isEmpty = false;
    const rows = document.createDocumentFragment();
    for (const event of fitting.reverse()) rows.append(this.row(event));
    this.list.prepend(rows);
    while (this.list.childElementCount > MOST_ROWS) this.list.lastElementChild?.remove();
    const { missed } = this.store;
    setText(this.note, missed ? `${missed} events came faster than this page shows them.` : "");
  }

  private row(event: ShownEvent): HTMLElement {
    const sign = event.sign === "+" ? "in" : event.sign === "-" ? "out" : "other";
    const value = Object.entries(event.value).map(([name, number]) => `${name} ${short(number)}`);
    const tags = Object.entries(event.tags).map(([name, tag]) => `${name}: ${tag}`);
    const details = [event.feed, ...value, event.reason.replaceAll("_", " "), ...tags].filter(Boolean).join(" · ");
    return h(
      "li",
      { class: `event ${sign}`, "data-query": event.query },
      h("time", {}, clock(event.time)),
      h(
        "span",
        { class: "what" },
        h("b", {}, event.stream),
        ` ${event.deed} `,
        h("button", { type: "button", class: "link", onclick: () => this.store.select(event.query) }, event.query),
      ),
      h("small", { title: details }, details),
    );
  }

  private markSelected(): void {
    for (const row of this.list.querySelectorAll<HTMLElement>("li.event")) {
      row.classList.toggle("selected", row.dataset["query"] === this.store.selected);
    }
  }
}
