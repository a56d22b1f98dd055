// The list of queries, and one query in detail: members, definition, replies, versions, and what can be done with it.

import { deleteQuery, fetchDetails, putQuery, type Replied } from "./connection";
import { h, replace, setText } from "./dom";
import { clock, whole } from "./format";
import { asDefinition, type Details } from "./protocol";
import type { Query, Store } from "./store";

const MOST_ROWS = 400;

type Order = (a: Query, b: Query) => number;

const NAMES = new Intl.Collator("en", { numeric: true });
const byId: Order = (a, b) => NAMES.compare(a.id, b.id);
const kindOf = (query: Query): string => {
  const kind: unknown = asDefinition(query.definition)?.kind;
  return typeof kind === "string" ? kind : "";
};
const ORDERS: { name: string; order: Order }[] = [
  { name: "Query", order: byId },
  { name: "Kind", order: (a, b) => NAMES.compare(kindOf(a), kindOf(b)) || byId(a, b) },
  { name: "Inside", order: (a, b) => b.members - a.members || byId(a, b) },
  { name: "Events/min", order: (a, b) => b.perMinute - a.perMinute || byId(a, b) },
];
const DETAILS_EVERY_MS = 2000;

export interface QueryActions {
  create(): void;
  edit(id: string, definition: unknown): void;
  locate(id: string): void;
  say(message: string, isFault?: boolean): void;
}

export class QueriesPanel {
  readonly element: HTMLElement;
  private readonly body = h("tbody");
  private readonly note = h("p", { class: "note" });
  private readonly listView: HTMLElement;
  private readonly detailView = h("div", { class: "detail", hidden: true });
  private readonly parts = new Map<string, { row: HTMLElement; cells: HTMLElement[] }>();
  private readonly heads: HTMLElement[];
  private order: Order = byId;
  private needle = "";
  private details: Details | null = null;
  private shownDetails = "";

  constructor(
    private readonly store: Store,
    private readonly actions: QueryActions,
  ) {
    const search = h("input", {
      type: "search",
      placeholder: "Find a query",
      "aria-label": "Only queries whose id contains",
      oninput: (event: InputEvent) => {
        this.needle = (event.target as HTMLInputElement).value;
        this.showList();
      },
    });
    const create = h("button", { type: "button", class: "primary", onclick: () => actions.create() }, "New query");
    this.heads = ORDERS.map(({ name, order }, i) =>
      h(
        "th",
        { scope: "col", class: i > 1 ? "number" : null },
        h("button", { type: "button", class: "link", title: `Order by ${name}`, onclick: () => this.setOrder(order) }, name),
      ),
    );
    this.listView = h(
      "div",
      {},
      h("div", { class: "filter" }, search, create),
      this.note,
      h("table", { class: "queries" }, h("caption", { class: "unseen" }, "Registered queries"), h("thead", {}, h("tr", {}, ...this.heads)), this.body),
    );
    this.element = h("section", { class: "panel-body" }, this.listView, this.detailView);
    store.on("setup", () => (create.hidden = Boolean(store.setup?.read_only)));
    store.on("queries", () => this.show());
    store.on("counts", () => this.show());
    store.on("selection", () => {
      this.details = null;
      this.shownDetails = "";
      this.show();
      void this.loadDetails();
    });
    setInterval(() => void this.loadDetails(), DETAILS_EVERY_MS);
  }

  private show(): void {
    const query = this.store.selected === null ? undefined : this.store.queries.get(this.store.selected);
    this.listView.hidden = Boolean(query);
    this.detailView.hidden = !query;
    if (query) this.showDetail(query);
    else this.showList();
  }

  private setOrder(order: Order): void {
    this.order = order;
    this.heads.forEach((head, i) => head.setAttribute("aria-sort", ORDERS[i]?.order === order ? (i < 2 ? "ascending" : "descending") : "none"));
    this.showList();
  }

  private showList(): void {
    const found = [...this.store.queries.values()].filter(({ id }) => id.includes(this.needle));
    found.sort(this.order);
    const shown = found.slice(0, MOST_ROWS);
    // A row that moves away under the pointer, or with the focus in it, cannot be used.
    const keepOrder = this.body.matches(":hover, :focus-within");
    const kept = new Set(shown.map(({ id }) => id));
    for (const [id, { row }] of this.parts) {
      if (kept.has(id)) continue;
      row.remove();
      this.parts.delete(id);
    }
    shown.forEach((query, i) => {
      const { row, cells } = this.parts.get(query.id) ?? this.addRow(query.id);
      const state = stateOf(query);
      const texts = [kindOf(query) || "–", whole(query.members), whole(query.perMinute)];
      texts.forEach((text, k) => cells[k] && setText(cells[k], text));
      row.className = state;
      row.title = state;
      if (this.body.children[i] !== row && !(keepOrder && row.isConnected)) this.body.insertBefore(row, this.body.children[i] ?? null);
    });
    const more = found.length - shown.length;
    const none = this.needle ? "No query has such an id." : "No query is registered. Draw one on the map, or use New query.";
    setText(this.note, more > 0 ? `${more} more; search for one of them.` : found.length ? "" : none);
  }

  private addRow(id: string): { row: HTMLElement; cells: HTMLElement[] } {
    const open = h("button", { type: "button", class: "link", onclick: () => this.store.select(id) }, id);
    const cells = [h("td", { class: "kind" }), h("td", { class: "number" }), h("td", { class: "number" })];
    const row = h("tr", {}, h("th", { scope: "row" }, open), ...cells);
    const parts = { row, cells };
    this.parts.set(id, parts);
    return parts;
  }

  private async loadDetails(): Promise<void> {
    const { selected } = this.store;
    if (selected === null || this.element.hidden) return;
    const details = await fetchDetails(selected);
    if (selected !== this.store.selected) return;
    this.details = details;
    this.show();
  }

  private showDetail(query: Query): void {
    const key = JSON.stringify([query, this.details]);
    // A press of a button must not meet another button that took its place.
    if (key === this.shownDetails) return;
    this.shownDetails = key;
    const { details } = this;
    const definition = asDefinition(query.definition);
    const focused = (document.activeElement as HTMLElement | null)?.dataset["action"];
    const members = details?.members ?? [];
    replace(
      this.detailView,
      h("button", { type: "button", class: "back", onclick: () => this.store.select(null) }, "← All queries"),
      h("h2", {}, query.id),
      h("p", { class: `state ${stateOf(query)}` }, `${stateOf(query)} · version ${query.version}`),
      query.error && h("p", { class: "fault" }, `${query.error.code}: ${query.error.message}`),
      h(
        "dl",
        { class: "figures" },
        h("div", {}, h("dt", {}, "Inside now"), h("dd", {}, whole(query.members))),
        h("div", {}, h("dt", {}, "Events a minute"), h("dd", {}, whole(query.perMinute))),
      ),
      this.buttons(query, definition),
      h("h3", {}, "Definition"),
      h("pre", { class: "definition", tabindex: "0", "aria-label": "Definition" }, JSON.stringify(query.definition, null, 2)),
      members.length > 0 && h("h3", {}, "Members"),
      members.length > 0 &&
        h("p", { class: "members" }, members.slice(0, 120).map(([, stream]) => stream).join(", "), details && details.n_members > 120 && ` and ${details.n_members - 120} more`),
      details && details.replies.length > 0 && h("h3", {}, "Replies"),
      details &&
        h(
          "ul",
          { class: "replies" },
          ...details.replies.map(({ status, version, offset, error }) =>
            h("li", { class: status }, h("b", {}, status), version === null ? ` offset ${offset}` : ` version ${version}`, error && `: ${error.message}`),
          ),
        ),
      details && details.versions.length > 1 && h("h3", {}, "Earlier versions"),
      details && details.versions.length > 1 && this.versions(query, details),
    );
    if (focused) this.detailView.querySelector<HTMLElement>(`[data-action="${focused}"]`)?.focus();
  }

  private buttons(query: Query, definition: ReturnType<typeof asDefinition>): HTMLElement {
    const paused = definition?.enabled === false;
    const button = (action: string, label: string, onclick: () => void, style = ""): HTMLElement =>
      h("button", { type: "button", class: style, "data-action": action, onclick }, label);
    const locate = button("locate", "Show", () => this.actions.locate(query.id));
    if (this.store.setup?.read_only) return h("div", { class: "actions" }, locate);
    return h(
      "div",
      { class: "actions" },
      locate,
      definition && button("edit", "Edit", () => this.actions.edit(query.id, query.definition)),
      definition && button("pause", paused ? "Resume" : "Pause", () => void this.pause(query, !paused)),
      button("delete", "Delete", () => void this.remove(query), "danger"),
    );
  }

  private versions(query: Query, details: Details): HTMLElement {
    return h(
      "ul",
      { class: "versions" },
      ...details.versions.slice(1).map(({ version, published, definition }) =>
        h(
          "li",
          {},
          h(
            "details",
            {},
            h("summary", {}, `Version ${version}, ${clock(published)}`),
            h("pre", { class: "definition" }, JSON.stringify(definition, null, 2)),
            !this.store.setup?.read_only &&
              h("button", { type: "button", onclick: () => this.actions.edit(query.id, definition) }, "Edit from this version"),
          ),
        ),
      ),
    );
  }

  private async pause(query: Query, paused: boolean): Promise<void> {
    const { enabled: _, ...rest } = asDefinition(query.definition) ?? {};
    this.report(query.id, await putQuery(query.id, paused ? { ...rest, enabled: false } : rest));
  }

  private async remove(query: Query): Promise<void> {
    if (!confirm(`Delete the query "${query.id}"? Streams that are inside will leave it.`)) return;
    this.report(query.id, await deleteQuery(query.id));
  }

  private report(id: string, replied: Replied): void {
    const { error } = replied;
    this.actions.say(error ? `${id}: ${error.message}` : `${id}: ${replied.status}`, !replied.ok);
  }
}

/** The state of a query in one word. */
export function stateOf(query: Query): string {
  const paused = asDefinition(query.definition)?.enabled === false;
  if (paused && ["accepted", "unchanged"].includes(query.status)) return "paused";
  return query.status === "unchanged" ? "accepted" : query.status;
}
