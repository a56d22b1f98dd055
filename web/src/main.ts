// The page: the stage on the left, the panel on the right, and what leads from one to the other.

import "./style.css";
import { connect } from "./connection";
import { h, replace } from "./dom";
import { EventsPanel } from "./eventsPanel";
import { HealthPanel } from "./healthPanel";
import { PageHeader } from "./pageHeader";
import { PanelTabs, type Tab } from "./panelTabs";
import { asDefinition, type Region, regionOf } from "./protocol";
import { QueriesPanel } from "./queriesPanel";
import { QueryEditor } from "./queryEditor";
import { StageView } from "./stageView";
import { Store } from "./store";

class Page {
  private readonly store = new Store();
  private readonly header = new PageHeader(this.store);
  private readonly stage = new StageView(this.store, (region, word) => this.take(region, word));
  private readonly editor: QueryEditor;
  private readonly health = new HealthPanel(this.store);
  private readonly tabs: PanelTabs;
  private selected: string | null = null;

  constructor(place: HTMLElement) {
    const say = (message: string, isFault?: boolean): void => this.stage.say(message, isFault);
    this.editor = new QueryEditor(this.store, {
      showRegion: (region, feed) => this.showHandles(region, feed),
      closed: (id) => this.close(id),
      say,
    });
    const events = new EventsPanel(this.store);
    const queries = new QueriesPanel(this.store, {
      create: () => this.openEditor(this.freeId("query"), { kind: "border", feed: this.store.feed }, true),
      edit: (id, definition) => this.openEditor(id, definition, false),
      locate: (id) => this.locate(id),
      say,
    });
    const panels = { events: events.element, queries: queries.element, health: this.health.element };
    this.tabs = new PanelTabs(panels, (tab) => this.choose(tab));
    const label = { class: "panel", "aria-label": "Events, queries and health" };
    const side = h("aside", label, this.tabs.element, ...Object.values(panels), this.editor.element);
    replace(place, this.header.element, this.stage.element, side);
    this.store.on("selection", () => this.showSelection());
    this.showTab("events");
    connect(this.store);
  }

  private choose(tab: Tab): void {
    if (tab === "queries") this.store.select(null);
    this.showTab(tab);
  }

  private showTab(tab: Tab): void {
    if (this.editor.isOpen) {
      this.editor.element.hidden = true;
      this.stage.edit(null, () => undefined);
    }
    this.tabs.show(tab);
    if (tab === "health") this.health.show();
  }

  private openEditor(id: string, definition: unknown, isNew: boolean): void {
    if (this.store.setup?.read_only) return;
    this.stage.cancelDrawing();
    this.tabs.hidePanels();
    this.editor.open(id, definition, isNew);
    const region = regionOf(definition);
    if (!isNew && region) this.stage.locate(region);
  }

  private showHandles(region: Region | null, feed: string): void {
    if (feed && this.store.feeds.has(feed)) this.store.show(feed);
    this.stage.edit(region, (moved) => this.editor.setRegion(moved));
  }

  private close(id: string | null): void {
    this.showTab(id === null ? this.tabs.shown : "queries");
    if (id !== null) this.store.select(id);
  }

  /** Puts a region that was drawn into the form that is open, or opens one. */
  private take(region: Region, word: string): void {
    if (this.editor.isOpen) this.editor.takeRegion(region);
    else this.openEditor(this.freeId(word), { kind: "border", feed: this.store.feed, region }, true);
  }

  private locate(id: string): void {
    const definition = asDefinition(this.store.queries.get(id)?.definition);
    if (!definition || !("feed" in definition)) return;
    this.store.show(String(definition.feed));
    const region = regionOf(definition);
    if (region) this.stage.locate(region);
  }

  private showSelection(): void {
    const { selected } = this.store;
    // A query that stays selected does not lead back from a feed that was chosen after it.
    const isNew = selected !== this.selected;
    this.selected = selected;
    if (isNew && selected !== null && !this.editor.isOpen) {
      this.showTab("queries");
      const feed = asDefinition(this.store.queries.get(selected)?.definition)?.["feed"];
      if (typeof feed === "string" && feed !== this.store.feed) this.store.show(feed);
    }
    this.stage.show();
  }

  private freeId(word: string): string {
    let n = 1;
    while (this.store.queries.has(`${word}-${n}`)) n += 1;
    return `${word}-${n}`;
  }
}

// The address that `bmq view` prints has the token; the cookie has it from now on.
if (location.search.includes("token=")) history.replaceState(null, "", location.pathname);

new Page(document.getElementById("app") ?? document.body);
