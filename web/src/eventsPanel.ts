// The list of events, the newest first, with its filter.

import { fetchEvents } from "./connection";
import { h, setText } from "./dom";
import { EventList } from "./eventList";
import { clock, short } from "./format";
import type { ShownEvent } from "./protocol";
import type { Store } from "./store";

export class EventsPanel {
  readonly element: HTMLElement;
  private readonly events = new EventList();
  private readonly rows = new WeakMap<ShownEvent, HTMLElement>();
  private readonly empty = h("li", { class: "empty" });
  private readonly list = h("ol", { class: "events", "aria-label": "Events, the newest first" });
  private readonly note = h("p", { class: "note" });
  private readonly pause: HTMLButtonElement;
  private readonly own: HTMLButtonElement;

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
    this.pause = h("button", { type: "button", "aria-pressed": "false", onclick: () => this.setHeld(!this.events.isHeld) }, "Hold");
    this.own = h("button", { type: "button", "aria-pressed": "true", onclick: () => this.setOwn(!this.isOwn) }, "This feed");
    this.element = h(
      "section",
      { class: "panel-body" },
      h("div", { class: "filter" }, field("query", "Query"), field("stream", "Stream"), kind, this.own, this.pause),
      this.note,
      this.list,
    );
    store.onEvents((events) => this.events.add(events) && this.show());
    store.on("setup", () => {
      this.own.hidden = store.feeds.size < 2;
      this.events.filter.feed = this.isOwn ? store.feed : "";
      this.events.begin();
      this.show();
    });
    store.on("selection", () => {
      this.followFeed();
      this.markSelected();
    });
    this.show();
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
    if (feed === this.events.filter.feed) return;
    this.events.filter.feed = feed;
    void this.reload();
  }

  private setHeld(held: boolean): void {
    this.pause.setAttribute("aria-pressed", String(held));
    if (held) return this.events.hold();
    this.events.goOn();
    void this.reload();
  }

  private setFilter(name: "query" | "stream" | "kind", value: string): void {
    this.events.filter[name] = value;
    void this.reload();
  }

  /** Shows at once what the page knows, then also what the server finds further back. */
  private async reload(): Promise<void> {
    const { generation, filter } = this.events;
    const wanted = { ...filter };
    this.events.refilter(this.store.events);
    this.show();
    const found = await fetchEvents(wanted);
    if (!found || generation !== this.events.generation || JSON.stringify(wanted) !== JSON.stringify(filter)) return;
    if (this.events.add(found)) this.show();
  }

  private show(): void {
    const { shown, filter } = this.events;
    const rows = [...shown].reverse().map((event) => this.rowOf(event));
    const isFiltered = Boolean(filter.query || filter.stream || filter.kind);
    setText(this.empty, isFiltered ? "No event fits the filter yet." : "No event yet. An event comes when a stream crosses a border.");
    // Rows that stay are not moved: one of them may have the focus.
    const wanted = new Set<Element>(rows.length ? rows : [this.empty]);
    for (const child of [...this.list.children]) if (!wanted.has(child)) child.remove();
    [...wanted].forEach((row, i) => {
      if (this.list.children[i] !== row) this.list.insertBefore(row, this.list.children[i] ?? null);
    });
    const { missed } = this.store;
    setText(this.note, missed ? `${missed} events came faster than this page shows them.` : "");
  }

  private rowOf(event: ShownEvent): HTMLElement {
    const row = this.rows.get(event) ?? this.row(event);
    this.rows.set(event, row);
    return row;
  }

  private row(event: ShownEvent): HTMLElement {
    const sign = event.sign === "+" ? "in" : event.sign === "-" ? "out" : "other";
    const value = Object.entries(event.value).map(([name, number]) => `${name} ${short(number)}`);
    const tags = Object.entries(event.tags).map(([name, tag]) => `${name}: ${tag}`);
    const details = [event.feed, ...value, event.reason.replaceAll("_", " "), ...tags].filter(Boolean).join(" · ");
    return h(
      "li",
      { class: `event ${sign}${event.query === this.store.selected ? " selected" : ""}`, "data-query": event.query },
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
