// Streams, flashes of crossings and the points of a drawing, on a canvas over the map.

import { h } from "./dom";
import { DEGREES } from "./projection";
import type { ShownEvent } from "./protocol";
import type { Point } from "./regions";
import type { MapStage } from "./mapStage";
import type { FeedStreams } from "./feedStreams";
import type { Store } from "./store";

const FLASH_MS = 1600;
const MOST_FLASHES = 250;
const MOST_MOVING = 4000; // more streams jump with each update: to draw them in every frame would cost too much
const FRAME_MS = 33;
const GRID_PIXELS = 130;

interface Flash {
  u: number;
  v: number;
  sign: string | null;
  at: number;
}

export class StreamLayer {
  readonly canvas: HTMLCanvasElement;
  /** The points of a drawing that is not finished, in the feed's numbers, and where the pointer is. */
  sketch: { points: Point[]; pointer: Point | null; cross: boolean } | null = null;
  private flashes: Flash[] = [];
  private lastFrame = 0;
  private readonly still = matchMedia("(prefers-reduced-motion: reduce)");

  constructor(
    private readonly stage: MapStage,
    private readonly store: Store,
  ) {
    this.canvas = h("canvas", { class: "streams", "aria-hidden": "true" });
    store.onEvents((events) => this.flash(events));
    const frame = (now: number): void => {
      requestAnimationFrame(frame);
      if (now - this.lastFrame < FRAME_MS || !this.isMoving(now)) return;
      this.draw(now);
    };
    requestAnimationFrame(frame);
  }

  resize(): void {
    const { clientWidth, clientHeight } = this.stage.element;
    const ratio = Math.min(2, devicePixelRatio);
    this.canvas.width = clientWidth * ratio;
    this.canvas.height = clientHeight * ratio;
    this.draw();
  }

  draw(now = performance.now()): void {
    this.lastFrame = now;
    const context = this.canvas.getContext("2d");
    const { feed } = this.stage;
    if (!context || !feed?.projection) return;
    const { clientWidth: width, clientHeight: height } = this.stage.element;
    const ratio = this.canvas.width / Math.max(1, width);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    const { lng, lat } = this.stage.map.getCenter();
    const [u0, v0] = DEGREES.toSquare(lng, lat);
    const size = 512 * 2 ** this.stage.map.getZoom();
    const view = { width, height, u0, v0, size, copies: copiesOf(feed, u0, size, width) };
    if (!feed.setup.lonlat) this.drawGrid(context, feed, width, height);
    this.drawStreams(context, feed, view, now);
    this.drawFlashes(context, view, now);
    this.drawLabels(context);
    this.drawSketch(context, width, height);
  }

  private isMoving(now: number): boolean {
    const { feed } = this.stage;
    if (!feed || this.stage.element.hidden) return false;
    return this.flashes.some((flash) => now - flash.at < FLASH_MS) || (feed.n <= MOST_MOVING && !this.still.matches);
  }

  private flash(events: ShownEvent[]): void {
    const now = performance.now();
    for (const event of events) {
      const feed = this.store.feeds.get(event.feed);
      if (!feed?.projection || feed !== this.stage.feed) continue;
      const [x, y] = feed.setup.dimensions.map((name) => event.value[name]);
      if (x === undefined || y === undefined) continue;
      const [u, v] = feed.projection.toSquare(x, y);
      this.flashes.push({ u, v, sign: event.sign, at: now });
    }
    this.flashes = this.flashes.filter((one) => now - one.at < FLASH_MS).slice(-MOST_FLASHES);
  }

  private drawStreams(context: CanvasRenderingContext2D, feed: FeedStreams, view: View, now: number): void {
    const moving = feed.n <= MOST_MOVING && !this.still.matches;
    const radius = Math.max(2.3, Math.min(4.5, 1.9 + this.stage.map.getZoom() * 0.18)) * (feed.n > 4000 ? 0.75 : 1);
    for (const inside of [false, true]) {
      const dots = new Path2D();
      const tails = new Path2D();
      for (let slot = 0; slot < feed.n; slot += 1) {
        if ((feed.inside[slot] ?? 0) > 0 !== inside) continue;
        const [toU, toV] = [feed.u[slot] ?? NaN, feed.v[slot] ?? 0];
        if (Number.isNaN(toU)) continue;
        const span = feed.span[slot] ?? 0;
        const share = moving && span ? Math.min(1, (now - (feed.since[slot] ?? 0)) / span) : 1;
        const [fromU, fromV] = [feed.fromU[slot] ?? toU, feed.fromV[slot] ?? toV];
        const [u, v] = [fromU + (toU - fromU) * share, fromV + (toV - fromV) * share];
        for (const copy of view.copies) {
          const x = (u + copy - view.u0) * view.size + view.width / 2;
          const y = (v - view.v0) * view.size + view.height / 2;
          if (x < -8 || y < -8 || x > view.width + 8 || y > view.height + 8) continue;
          if (moving) {
            const length = Math.hypot(toU - fromU, toV - fromV) * view.size;
            const part = length > 0 ? Math.min(1, 14 / length) : 0;
            tails.moveTo(x, y);
            tails.lineTo(x - (toU - fromU) * part * view.size, y - (toV - fromV) * part * view.size);
          }
          if (feed.n > MOST_MOVING) dots.rect(x - radius, y - radius, 2 * radius, 2 * radius);
          else {
            dots.moveTo(x + radius, y);
            dots.arc(x, y, radius, 0, 7);
          }
        }
      }
      if (moving) {
        context.strokeStyle = inside ? "rgba(255, 180, 84, .38)" : "rgba(143, 184, 222, .3)";
        context.lineWidth = radius * 0.9;
        context.stroke(tails);
      }
      context.fillStyle = inside ? "#ffb454" : "rgba(150, 190, 226, .88)";
      context.fill(dots);
    }
  }

  /** A plane has no land: lines at round numbers say where one is. */
  private drawGrid(context: CanvasRenderingContext2D, feed: FeedStreams, width: number, height: number): void {
    const [[left, top], [right, bottom]] = [this.stage.unproject(0, 0), this.stage.unproject(width, height)];
    const step = roundStep(((right - left) / width) * GRID_PIXELS);
    const [xName, yName] = feed.setup.dimensions;
    context.font = "11px system-ui, sans-serif";
    context.fillStyle = "#64798f";
    context.strokeStyle = "rgba(120, 150, 185, .11)";
    context.lineWidth = 1;
    context.textAlign = "left";
    context.beginPath();
    for (let x = Math.ceil(left / step) * step; x < right; x += step) {
      const [at] = this.stage.project([x, top]);
      context.moveTo(Math.round(at) + 0.5, 0);
      context.lineTo(Math.round(at) + 0.5, height);
      context.fillText(`${xName} ${Number(x.toPrecision(8))}`, at + 4, height - 6);
    }
    for (let y = Math.ceil(bottom / step) * step; y < top; y += step) {
      const [, at] = this.stage.project([left, y]);
      context.moveTo(0, Math.round(at) + 0.5);
      context.lineTo(width, Math.round(at) + 0.5);
      context.fillText(`${yName} ${Number(y.toPrecision(8))}`, 56, at - 4);
    }
    context.stroke();
  }

  private drawFlashes(context: CanvasRenderingContext2D, view: View, now: number): void {
    for (const { u, v, sign, at } of this.flashes) {
      const age = (now - at) / FLASH_MS;
      if (age >= 1) continue;
      for (const copy of view.copies) {
        const x = (u + copy - view.u0) * view.size + view.width / 2;
        const y = (v - view.v0) * view.size + view.height / 2;
        context.beginPath();
        context.arc(x, y, 4 + 20 * Math.sqrt(age), 0, 7);
        context.globalAlpha = (1 - age) ** 1.5;
        context.lineWidth = 2.4;
        context.strokeStyle = sign === "+" ? "#3ddc97" : sign === "-" ? "#ff6b8b" : "#b794f6";
        context.stroke();
      }
    }
    context.globalAlpha = 1;
  }

  /** Names the regions that are large enough on the screen, and the selected one. */
  private drawLabels(context: CanvasRenderingContext2D): void {
    context.font = "600 11px system-ui, sans-serif";
    context.textAlign = "center";
    for (const [id, { left, right, low, high }] of this.stage.queryRegions()) {
      const isSelected = id === this.store.selected;
      const [x, y] = this.stage.project([(left + right) / 2, high]);
      const [xLeft] = this.stage.project([(left + right) / 2 - (right - left) / 2, low]);
      if (!isSelected && 2 * Math.abs(x - xLeft) < Math.max(34, id.length * 4.6)) continue;
      const label = id.length > 40 ? `${id.slice(0, 39)}…` : id;
      context.lineWidth = 3;
      context.strokeStyle = "rgba(9, 16, 26, .85)";
      context.strokeText(label, x, y - 5);
      context.fillStyle = isSelected ? "#ffffff" : "#a9c4d8";
      context.fillText(label, x, y - 5);
    }
  }

  private drawSketch(context: CanvasRenderingContext2D, width: number, height: number): void {
    if (!this.sketch) return;
    const { points, pointer, cross } = this.sketch;
    const places = [...points, ...(pointer ? [pointer] : [])].map((point) => this.stage.project(point));
    context.strokeStyle = "#d6bcfa";
    context.fillStyle = "#d6bcfa";
    context.lineWidth = 2;
    context.setLineDash([6, 4]);
    context.beginPath();
    places.forEach(([x, y], i) => (i ? context.lineTo(x, y) : context.moveTo(x, y)));
    context.stroke();
    context.setLineDash([]);
    for (const [x, y] of places.slice(0, points.length)) {
      context.beginPath();
      context.arc(x, y, 5, 0, 7);
      context.fill();
    }
    if (!cross) return;
    const [x, y] = [width / 2, height / 2];
    context.beginPath();
    context.moveTo(x - 12, y);
    context.lineTo(x + 12, y);
    context.moveTo(x, y - 12);
    context.lineTo(x, y + 12);
    context.stroke();
  }
}

interface View {
  width: number;
  height: number;
  u0: number;
  v0: number;
  size: number;
  copies: number[];
}

/** Returns the smallest of 1, 2 and 5 times a power of ten that is not below a number. */
export function roundStep(least: number): number {
  const power = 10 ** Math.floor(Math.log10(least));
  return power * (least <= power ? 1 : least <= 2 * power ? 2 : least <= 5 * power ? 5 : 10);
}

function copiesOf(feed: FeedStreams, u0: number, size: number, width: number): number[] {
  if (!feed.setup.lonlat) return [0];
  const reach = width / size / 2;
  const copies = [];
  for (let copy = Math.floor(u0 - reach); copy <= Math.ceil(u0 + reach); copy += 1) copies.push(copy);
  return copies;
}
