// The stage: the map or the chart of the feed, the buttons that draw, and what the page says above them.

import { ChartStage } from "./chartStage";
import { h, setText } from "./dom";
import { DrawTool, type Shape } from "./drawTool";
import { whole } from "./format";
import { MapStage } from "./mapStage";
import type { Region } from "./protocol";
import type { Store } from "./store";

const SAY_MS = 9000;
const DRAWN_BY_HAND = 4000; // streams; above this many the layer does not animate by itself
const SHAPES: [Shape, string][] = [
  ["polygon", "Polygon"],
  ["box", "Box"],
  ["circle", "Circle"],
];

export class StageView {
  readonly element = h("main", { class: "stage", "aria-label": "Live streams" });
  private map: MapStage | null = null;
  private draw: DrawTool | null = null;
  private readonly chart: ChartStage;
  private readonly shapes: HTMLElement[];
  private readonly tools: HTMLElement;
  private readonly noStage = h("p", { class: "no-stage", hidden: true });
  private readonly leftOut = h("p", { class: "left-out", hidden: true });
  private readonly refusal = h("p", { class: "refusal", role: "alert", hidden: true });
  private readonly toast = h("div", { class: "toast", role: "status", "aria-live": "polite" });
  private sayTimer = 0;

  /** Calls `drew` with a region that was drawn, and a word for its query. */
  constructor(
    private readonly store: Store,
    private readonly drew: (region: Region, word: string) => void,
  ) {
    this.chart = new ChartStage(store, (region) => drew(region, "band"));
    this.shapes = SHAPES.map(([shape, label]) => this.shapeButton(shape, label));
    const home = h("button", { type: "button", title: "Show the whole feed", onclick: () => this.map?.goHome() }, "Whole");
    this.tools = h("div", { class: "tools", role: "group", "aria-label": "Draw a query" }, ...this.shapes, home);
    this.element.append(this.chart.element, this.tools, this.noStage, this.leftOut, this.refusal, this.toast);
    store.on("setup", () => this.begin());
    store.on("queries", () => this.map?.refresh());
    store.on("counts", () => this.map?.refresh());
    store.on("streams", () => this.refresh());
    store.on("health", () => this.showLeftOut());
    store.on("connection", () => this.showRefusal());
  }

  /** Shows the feed that was chosen. */
  show(): void {
    const { current, setup } = this.store;
    const dimensions = current?.setup.dimensions.length ?? 0;
    const isMap = dimensions === 2 && Boolean(current?.projection);
    if (this.map) this.map.element.hidden = !isMap;
    this.chart.element.hidden = dimensions !== 1;
    this.tools.hidden = !isMap;
    for (const button of this.shapes) button.hidden = Boolean(setup?.read_only);
    this.noStage.hidden = dimensions === 1 || isMap;
    const none = `A feed of ${dimensions} dimensions has no map and no chart. Its queries and events are in the panel.`;
    setText(this.noStage, dimensions === 2 ? "No reading of this feed has come yet. The first one lays out the map." : none);
    if (!isMap) this.draw?.cancel();
    this.showLeftOut();
    this.map?.refresh(true);
    this.chart.refresh();
  }

  /** Shows the handles of a region; null: none. */
  edit(region: Region | null, change: (region: Region) => void): void {
    const onMap = this.store.current?.setup.dimensions.length === 2;
    this.draw?.edit(onMap ? region : null, change);
    this.chart.edit(onMap ? null : region, change);
  }

  /** Ends what is being drawn. */
  cancelDrawing(): void {
    this.draw?.cancel();
    this.chart.cancel();
  }

  /** Moves the map to a region. */
  locate(region: Region): void {
    this.map?.showRegion(region);
  }

  say(message: string, isFault = false): void {
    setText(this.toast, message);
    this.toast.className = `toast shown${isFault ? " bad" : ""}`;
    clearTimeout(this.sayTimer);
    this.sayTimer = window.setTimeout(() => (this.toast.className = "toast"), SAY_MS);
  }

  private begin(): void {
    if (!this.map) {
      this.map = new MapStage(this.store);
      this.draw = new DrawTool(this.map);
      this.element.prepend(this.map.element);
      this.map.map.resize();
    }
    this.show();
  }

  private refresh(): void {
    const { current } = this.store;
    if (current?.setup.dimensions.length === 1) return this.chart.refresh();
    if (this.map?.element.hidden && current?.projection) this.show();
    this.map?.refresh();
    if ((this.map?.feed?.n ?? 0) > DRAWN_BY_HAND) this.map?.layer.draw();
  }

  private shapeButton(shape: Shape, label: string): HTMLElement {
    const begin = (): void => this.draw?.begin(shape, (region) => this.drew(region, "area"));
    return h("button", { type: "button", "aria-label": `Draw a ${shape}`, title: `Draw a ${shape}`, onclick: begin }, label);
  }

  private showLeftOut(): void {
    const { current, feed, health } = this.store;
    const n = health?.streams_left_out[feed] ?? 0;
    this.leftOut.hidden = n === 0;
    setText(this.leftOut, `The first ${whole(current?.n ?? 0)} streams of this feed are shown. There are at least ${whole(n)} more; the service watches all.`);
  }

  private showRefusal(): void {
    setText(this.refusal, this.store.refusal);
    this.refusal.hidden = !this.store.refusal;
  }
}
