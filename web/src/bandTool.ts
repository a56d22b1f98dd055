// Draws a band of values on the chart: by a drag from one border to the other, or with the keyboard.

import type uPlot from "uplot";
import { h, setText } from "./dom";
import { follow } from "./drag";
import { intervalBetween } from "./regionEdit";

export interface BandPlace {
  /** The plot that is shown now; the chart makes it anew for other streams. */
  plot(): uPlot | null;
  draw(interval: [number, number]): void;
}

const HINT = "Drag from one border to the other. With the keyboard: Enter takes the middle of the chart, and the arrow keys move its borders then.";
const TOO_THIN = "A band has two borders: press at one value, and release at another.";

export class BandTool {
  readonly element: HTMLElement;
  private readonly sketch = h("div", { class: "band-sketch", hidden: true });
  private readonly hint = h("p", { class: "draw-hint", role: "status" });
  private readonly sheet: HTMLElement;
  private from = 0;
  private to = 0;

  constructor(private readonly place: BandPlace) {
    this.sheet = h("div", { class: "band-sheet", tabindex: "0", role: "application", "aria-label": "Chart. Drag a band, or press Enter." }, this.sketch);
    const cancel = h("button", { type: "button", onclick: () => this.cancel() }, "Cancel");
    const bar = h("div", { class: "draw-bar" }, this.hint, h("div", { class: "draw-actions" }, cancel));
    this.element = h("div", { hidden: true }, this.sheet, bar);
    this.sheet.addEventListener("pointerdown", (down) => this.drag(down));
    this.sheet.addEventListener("keydown", (event) => event.key === "Enter" && this.takeMiddle(event));
    window.addEventListener("keydown", (event) => event.key === "Escape" && this.cancel());
  }

  begin(): void {
    this.element.hidden = false;
    this.sketch.hidden = true;
    setText(this.hint, HINT);
    this.sheet.focus();
  }

  cancel(): void {
    this.element.hidden = true;
  }

  private drag(down: PointerEvent): void {
    down.preventDefault();
    this.sheet.focus();
    this.from = this.to = this.valueAt(down.clientY);
    const move = (event: PointerEvent): void => {
      this.to = this.valueAt(event.clientY);
      this.showSketch();
    };
    follow(down, move, () => this.finish());
  }

  private takeMiddle(event: KeyboardEvent): void {
    event.preventDefault();
    const { min = 0, max = 1 } = this.place.plot()?.scales["y"] ?? {};
    this.from = min + (max - min) * 0.4;
    this.to = min + (max - min) * 0.6;
    this.finish();
  }

  private finish(): void {
    const plot = this.place.plot();
    if (this.element.hidden || !plot) return; // Escape was pressed meanwhile
    const interval = intervalBetween(this.from, this.to, Math.abs(plot.posToVal(1, "y") - plot.posToVal(0, "y")));
    this.sketch.hidden = true;
    if (!interval) return setText(this.hint, TOO_THIN);
    this.cancel();
    this.place.draw(interval);
  }

  private valueAt(clientY: number): number {
    const plot = this.place.plot();
    if (!plot) return 0;
    const { top, height } = plot.over.getBoundingClientRect();
    return plot.posToVal(Math.max(0, Math.min(height, clientY - top)), "y");
  }

  private showSketch(): void {
    const plot = this.place.plot();
    if (!plot) return;
    const [y0, y1] = [plot.valToPos(this.from, "y"), plot.valToPos(this.to, "y")];
    this.sketch.hidden = false;
    this.sketch.style.top = `${plot.over.offsetTop + Math.min(y0, y1)}px`;
    this.sketch.style.height = `${Math.abs(y1 - y0)}px`;
  }
}
