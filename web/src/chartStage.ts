// The chart of a feed of one dimension: streams as lines, regions as bands, crossings as marks.

import "uplot/dist/uPlot.min.css";
import uPlot from "uplot";
import { BandTool } from "./bandTool";
import { h, replace } from "./dom";
import { follow } from "./drag";
import { drawn, namedStreams } from "./drawnQueries";
import type { FeedStreams } from "./feedStreams";
import type { Region, ShownEvent } from "./protocol";
import { intervalOf, type Point } from "./regions";
import { handlesOf } from "./regionEdit";
import { roundTo } from "./projection";
import type { Query, Store } from "./store";

const COLOURS = ["#4fd1c5", "#ffb454", "#b794f6", "#7cc4ff", "#ff8fab", "#a3e635"];
const SPAN_SECONDS = 120;
const MOST_BANDS = 24;
const MOST_MARKS = 400;

export class ChartStage {
  readonly element: HTMLElement;
  private readonly plotElement = h("div", { class: "plot" });
  private readonly chips = h("div", { class: "chips", role: "group", "aria-label": "Streams in the chart" });
  private readonly options = h("datalist", { id: "stream-options" });
  private readonly handles = h("div", { class: "handles", role: "group", "aria-label": "Borders of the region" });
  private plot: uPlot | null = null;
  private plotted = "";
  private watched: string[] = [];
  private feedName = "";
  private marks: { time: number; value: number; sign: string | null; stream: string }[] = [];
  private edited: { region: Region; change: (region: Region) => void } | null = null;
  private readonly bandTool: BandTool;
  private readonly bandButton: HTMLElement;

  /** Calls `drew` with the region of a band that was drawn. */
  constructor(
    private readonly store: Store,
    drew: (region: Region) => void,
  ) {
    const input = h("input", { list: "stream-options", placeholder: "Add a stream", "aria-label": "Add a stream to the chart" });
    const form = h(
      "form",
      {
        class: "add-stream",
        onsubmit: (event: Event) => {
          event.preventDefault();
          this.watch(input.value.trim());
          input.value = "";
        },
      },
      input,
      this.options,
      h("button", { type: "submit" }, "Add"),
    );
    this.bandTool = new BandTool({
      plot: () => this.plot,
      draw: (interval) => drew({ box: { [this.feed?.setup.dimensions[0] ?? ""]: interval } }),
    });
    const begin = (): void => this.bandTool.begin();
    this.bandButton = h("button", { type: "button", title: "Draw a band of values: a border query", onclick: begin }, "Draw a band");
    const bar = h("div", { class: "chart-bar" }, this.chips, form, this.bandButton);
    const area = h("div", { class: "plot-area" }, this.plotElement, this.handles, this.bandTool.element);
    this.element = h("div", { class: "stage-chart", hidden: true }, bar, area);
    store.onEvents((events) => this.mark(events));
    new ResizeObserver(() => this.resize()).observe(this.plotElement);
  }

  get feed(): FeedStreams | undefined {
    const feed = this.store.current;
    return feed?.setup.dimensions.length === 1 ? feed : undefined;
  }

  refresh(): void {
    const { feed } = this;
    this.bandButton.hidden = this.store.setup?.read_only ?? true;
    if (!feed || this.element.hidden) return this.bandTool.cancel();
    if (this.feedName !== feed.name) {
      this.feedName = feed.name;
      this.watched = [];
      this.marks = [];
    }
    if (!this.watched.length) this.watched = this.busiest(feed, 3);
    if (this.options.childElementCount !== Math.min(feed.n, 2000)) {
      replace(this.options, ...feed.ids.slice(0, 2000).map((id) => h("option", { value: id })));
    }
    const key = `${feed.name}\n${this.watched.join("\n")}`;
    if (key !== this.plotted) this.rebuild(feed, key);
    this.plot?.setData(this.columns(feed));
    this.placeHandles();
  }

  /** Ends the drawing of a band. */
  cancel(): void {
    this.bandTool.cancel();
  }

  /** Shows a region that is edited; null: none. */
  edit(region: Region | null, change: (region: Region) => void): void {
    this.bandTool.cancel();
    this.edited = region ? { region, change } : null;
    const { feed } = this;
    replace(this.handles, ...(region && feed ? this.currentHandles().map(({ name }) => this.handleButton(name)) : []));
    this.plot?.redraw();
    this.placeHandles();
  }

  private busiest(feed: FeedStreams, n: number): string[] {
    const crossed = [...this.store.events].reverse().filter((event) => event.feed === feed.name);
    const ids = [...new Set(crossed.map((event) => event.stream))].slice(0, 60);
    const value = (id: string): number => feed.values[0]?.[feed.slotOf(id) ?? -1] ?? NaN;
    // Those whose values are near each other, so that one axis shows them all.
    const sorted = ids.filter((id) => !Number.isNaN(value(id))).sort((a, b) => value(a) - value(b));
    const middle = Math.max(0, Math.floor(sorted.length / 2) - 1);
    const chosen = sorted.slice(middle, middle + n);
    return chosen.length ? chosen : feed.ids.slice(0, n);
  }

  private watch(id: string): void {
    if (this.feed?.slotOf(id) === undefined || this.watched.includes(id)) return;
    this.watched = [...this.watched, id].slice(-COLOURS.length);
    this.refresh();
  }

  private rebuild(feed: FeedStreams, key: string): void {
    this.plotted = key;
    this.plot?.destroy();
    const axis = { stroke: "#8aa0b8", grid: { stroke: "#1c2a3c", width: 1 }, ticks: { show: false }, font: "11px system-ui" };
    this.plot = new uPlot(
      {
        ...this.size(),
        legend: { show: false },
        cursor: { points: { size: 6 } },
        scales: { x: { time: true }, y: { range: (_, low, high) => padded(low, high) } },
        axes: [axis, { ...axis, size: 64 }],
        series: [
          {},
          ...this.watched.map((label, i) => ({
            label,
            stroke: COLOURS[i] ?? "#fff",
            width: 1.8,
            spanGaps: true,
            points: { show: false },
          })),
        ],
        hooks: { drawClear: [(plot) => this.drawBands(plot)], draw: [(plot) => this.drawMarks(plot)] },
      },
      this.columns(feed),
      this.plotElement,
    );
    replace(
      this.chips,
      ...this.watched.map((id, i) => {
        const remove = (): void => {
          this.watched = this.watched.filter((one) => one !== id);
          this.refresh();
        };
        return h(
          "span",
          { class: `chip colour-${i}` },
          id,
          h("button", { type: "button", "aria-label": `Remove ${id} from the chart`, onclick: remove }, "×"),
        );
      }),
    );
  }

  private columns(feed: FeedStreams): uPlot.AlignedData {
    const tables = this.watched.map((id): uPlot.AlignedData => {
      const history = feed.histories.get(feed.slotOf(id) ?? -1);
      if (!history) return [[], []];
      const begin = (history.times[history.times.length - 1] ?? 0) - SPAN_SECONDS;
      const first = Math.max(0, history.times.findIndex((time) => time >= begin));
      return [history.times.slice(first), history.values.slice(first)];
    });
    return tables.length ? uPlot.join(tables) : [[], []];
  }

  private size(): { width: number; height: number } {
    return { width: Math.max(200, this.plotElement.clientWidth), height: Math.max(160, this.plotElement.clientHeight) };
  }

  private resize(): void {
    this.plot?.setSize(this.size());
    this.placeHandles();
  }

  private bands(plot: uPlot): { query: Query; low: number; high: number }[] {
    const { feed } = this;
    const [bottom, top] = [plot.scales["y"]?.min ?? 0, plot.scales["y"]?.max ?? 0];
    if (!feed) return [];
    const found = drawn(this.store.queriesOf(feed.name), (query, region) => {
      const interval = intervalOf(region, feed.setup.dimensions[0] ?? "");
      if (!interval || interval[1] < bottom || interval[0] > top) return null;
      const streams = namedStreams(query);
      if (streams && !streams.some((id) => this.watched.includes(id)) && query.id !== this.store.selected) return null;
      return { query, low: Math.max(bottom, interval[0]), high: Math.min(top, interval[1]) };
    });
    return found.slice(0, MOST_BANDS);
  }

  private drawBands(plot: uPlot): void {
    const { ctx, bbox } = plot;
    ctx.save();
    ctx.font = `${11 * devicePixelRatio}px system-ui`;
    ctx.textAlign = "left"; // uPlot leaves it as its axis has it
    ctx.textBaseline = "alphabetic";
    this.bands(plot).forEach(({ query, low, high }, i) => {
      const [y0, y1] = [plot.valToPos(high, "y", true), plot.valToPos(low, "y", true)];
      const selected = query.id === this.store.selected;
      ctx.fillStyle = selected ? "rgba(183, 148, 246, .2)" : i % 2 ? "rgba(79, 209, 197, .06)" : "rgba(79, 209, 197, .11)";
      ctx.fillRect(bbox.left, y0, bbox.width, y1 - y0);
      if (y1 - y0 < 14 * devicePixelRatio) return;
      ctx.fillStyle = selected ? "#d6bcfa" : "#5f8f95";
      ctx.fillText(query.id.slice(0, 40), bbox.left + 8, y0 + 14 * devicePixelRatio);
    });
    const [low, high] = this.currentHandles().map((handle) => plot.valToPos(handle.at[1], "y", true));
    if (low !== undefined && high !== undefined) {
      ctx.fillStyle = "rgba(214, 188, 250, .16)";
      ctx.fillRect(bbox.left, high, bbox.width, low - high);
    }
    ctx.restore();
  }

  private drawMarks(plot: uPlot): void {
    const { ctx, bbox } = plot;
    const size = 5 * devicePixelRatio;
    ctx.save();
    for (const { time, value, sign, stream } of this.marks) {
      if (!this.watched.includes(stream)) continue;
      const [x, y] = [plot.valToPos(time, "x", true), plot.valToPos(value, "y", true)];
      if (x < bbox.left || x > bbox.left + bbox.width) continue;
      ctx.beginPath();
      if (sign) {
        const up = sign === "+" ? -1 : 1;
        ctx.moveTo(x, y + up * size);
        ctx.lineTo(x + size, y - up * size);
        ctx.lineTo(x - size, y - up * size);
      } else ctx.arc(x, y, size * 0.7, 0, 7);
      ctx.fillStyle = sign === "+" ? "#3ddc97" : sign === "-" ? "#ff6b8b" : "#b794f6";
      ctx.fill();
    }
    ctx.restore();
  }

  private mark(events: ShownEvent[]): void {
    const { feed } = this;
    if (!feed) return;
    for (const event of events) {
      if (event.feed !== feed.name) continue;
      const value = event.value[feed.setup.dimensions[0] ?? ""];
      if (value !== undefined) this.marks.push({ time: event.time / 1000, value, sign: event.sign, stream: event.stream });
    }
    if (this.marks.length > MOST_MARKS * 5) this.marks = this.marks.slice(-MOST_MARKS * 4);
  }

  private currentHandles(): ReturnType<typeof handlesOf> {
    const { feed, plot } = this;
    if (!this.edited || !feed || !plot) return [];
    const [low, high] = [plot.scales["y"]?.min ?? 0, plot.scales["y"]?.max ?? 1];
    return handlesOf(this.edited.region, feed.setup, { left: 0, right: 0, low, high });
  }

  private handleButton(name: string): HTMLElement {
    const button = h("button", { type: "button", class: "handle wide", "aria-label": `${name}: drag it, or use the arrow keys`, title: name });
    const index = (): number => [...this.handles.children].indexOf(button);
    button.addEventListener("pointerdown", (down) => {
      down.preventDefault();
      button.focus();
      follow(down, (event) => this.moveHandle(index(), this.valueAt(event.clientY)));
    });
    button.addEventListener("keydown", (event) => {
      const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
      const { plot } = this;
      const handle = this.currentHandles()[index()];
      if (!step || !plot || !handle) return;
      event.preventDefault();
      const y = plot.valToPos(handle.at[1], "y") + step * (event.shiftKey ? 20 : 4);
      this.moveHandle(index(), plot.posToVal(y, "y"));
    });
    return button;
  }

  private valueAt(clientY: number): number {
    const top = this.plot?.over.getBoundingClientRect().top ?? 0;
    return this.plot?.posToVal(clientY - top, "y") ?? 0;
  }

  private moveHandle(index: number, value: number): void {
    const handle = this.currentHandles()[index];
    const { plot, edited } = this;
    if (!handle || !plot || !edited) return;
    const pixel = Math.abs(plot.posToVal(1, "y") - plot.posToVal(0, "y"));
    const moved: Point = [0, roundTo(value, pixel)];
    const region = handle.move(moved);
    this.edited = { ...edited, region };
    plot.redraw(false);
    this.placeHandles();
    edited.change(region);
  }

  private placeHandles(): void {
    const { plot } = this;
    if (!plot) return;
    const offset = plot.over.offsetTop;
    this.currentHandles().forEach((handle, i) => {
      const button = this.handles.children[i] as HTMLElement | undefined;
      if (!button) return;
      const y = Math.max(0, Math.min(plot.over.clientHeight, plot.valToPos(handle.at[1], "y")));
      button.style.transform = `translate(${plot.over.offsetLeft}px, ${offset + y}px)`;
      button.style.width = `${plot.over.clientWidth}px`;
    });
  }
}

function padded(low: number | null, high: number | null): [number, number] {
  if (low === null || high === null) return [0, 1];
  const pad = (high - low || Math.abs(high) || 1) * 0.18;
  return [low - pad, high + pad];
}
