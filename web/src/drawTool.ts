// Draws a new region on the map with the pointer or the keyboard, and moves the handles of one that is edited.

import { h, replace, setText } from "./dom";
import { follow } from "./drag";
import type { MapStage } from "./mapStage";
import { roundTo } from "./projection";
import type { Region } from "./protocol";
import { type Handle, handlesOf, radiusTo, wrap } from "./regionEdit";
import type { Point } from "./regions";

export type Shape = "polygon" | "box" | "circle";

const HINTS: Record<Shape, string> = {
  polygon: "Click the corners, then the first one again. With the keyboard: arrow keys move the map, Enter sets a corner at the cross.",
  box: "Click two opposite corners. With the keyboard: arrow keys move the map, Enter sets a corner at the cross.",
  circle: "Click the centre, then the rim. With the keyboard: arrow keys move the map, Enter sets a point at the cross.",
};
const CLOSE_PIXELS = 12;
const STEP_PIXELS = 8;
const SHORTEST_SIDE_PIXELS = 40; // with a handle in its middle; on a shorter side the handles would lie on each other

export class DrawTool {
  readonly bar: HTMLElement;
  private readonly hint = h("p", { class: "draw-hint", role: "status" });
  private readonly handles: HTMLElement;
  private shape: Shape | null = null;
  private points: Point[] = [];
  private done: (region: Region) => void = () => undefined;
  private edited: { region: Region; change: (region: Region) => void } | null = null;
  private readonly actions: HTMLElement;

  constructor(private readonly stage: MapStage) {
    this.actions = h(
      "div",
      { class: "draw-actions" },
      h("button", { type: "button", class: "primary", onclick: () => this.finish() }, "Finish"),
      h("button", { type: "button", onclick: () => this.undo() }, "Undo point"),
      h("button", { type: "button", onclick: () => this.cancel() }, "Cancel"),
    );
    this.bar = h("div", { class: "draw-bar", hidden: true }, this.hint, this.actions);
    this.handles = h("div", { class: "handles", role: "group", "aria-label": "Handles of the region" });
    stage.element.append(this.handles, this.bar);
    stage.map.on("click", (event) => this.shape && this.add([event.point.x, event.point.y]));
    stage.map.on("mousemove", (event) => this.shape && this.point([event.point.x, event.point.y]));
    stage.map.on("move", () => this.placeHandles());
    stage.map.getCanvas().addEventListener("keydown", (event) => this.key(event));
    window.addEventListener("keydown", (event) => event.key === "Escape" && this.shape && this.cancel());
  }

  get isDrawing(): boolean {
    return this.shape !== null;
  }

  begin(shape: Shape, done: (region: Region) => void): void {
    this.edit(null, () => undefined);
    this.shape = shape;
    this.points = [];
    this.done = done;
    this.bar.hidden = false;
    setText(this.hint, HINTS[shape]);
    this.stage.element.classList.add("drawing");
    this.stage.map.doubleClickZoom.disable();
    this.stage.map.getCanvas().focus();
    this.sketch(null);
  }

  cancel(): void {
    this.shape = null;
    this.bar.hidden = true;
    this.stage.element.classList.remove("drawing");
    this.stage.map.doubleClickZoom.enable();
    this.stage.layer.sketch = null;
    this.stage.layer.draw();
  }

  /** Shows the handles of a region; null: none. */
  edit(region: Region | null, change: (region: Region) => void): void {
    this.edited = region ? { region, change } : null;
    this.stage.setDraft(region);
    const { feed } = this.stage;
    if (!region || !feed) return replace(this.handles);
    const focused = [...this.handles.children].indexOf(document.activeElement as Element);
    replace(this.handles, ...handlesOf(region, feed.setup, feed.extent).map((handle) => this.handleButton(handle)));
    this.placeHandles();
    this.focus(focused);
  }

  private handleButton({ name, side, remove }: Handle): HTMLElement {
    const help = side
      ? "drag it, or move it with the arrow keys, to add a vertex"
      : `drag it, or move it with the arrow keys${remove ? "; a double click or Delete removes it" : ""}`;
    const label = { "aria-label": `${name}: ${help}`, title: side ? "Drag it to add a vertex" : name };
    const button = h("button", { type: "button", class: side ? "handle middle" : "handle", ...label });
    const index = (): number => [...this.handles.children].indexOf(button);
    button.addEventListener("pointerdown", (down) => {
      down.preventDefault();
      button.focus();
      let dragged = index();
      follow(down, (event) => {
        const { left, top } = this.stage.element.getBoundingClientRect();
        const before = dragged;
        dragged = this.moveHandle(before, [event.clientX - left, event.clientY - top]);
        if (dragged !== before) this.focus(dragged);
      });
    });
    button.addEventListener("dblclick", () => this.removeHandle(index()));
    button.addEventListener("keydown", (event) => {
      const by: Record<string, Point> = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
      const step = by[event.key];
      const handle = this.currentHandles()[index()];
      if (step && handle) {
        event.preventDefault();
        const factor = STEP_PIXELS * (event.shiftKey ? 5 : 1);
        const [x, y] = this.stage.project(handle.at);
        this.focus(this.moveHandle(index(), [x + step[0] * factor, y + step[1] * factor]));
      } else if (event.key === "Delete" || event.key === "Backspace") {
        event.preventDefault();
        this.removeHandle(index());
      }
    });
    return button;
  }

  private focus(index: number): void {
    (this.handles.children[index] as HTMLElement | undefined)?.focus();
  }

  private currentHandles(): Handle[] {
    const { feed } = this.stage;
    return this.edited && feed ? handlesOf(this.edited.region, feed.setup, feed.extent) : [];
  }

  /** Moves a handle to a place of the screen; returns which of the handles it is then. */
  private moveHandle(index: number, place: Point): number {
    const handle = this.currentHandles()[index];
    if (!handle) return index;
    const isMiddle = handle.side !== undefined;
    this.change(handle.move(this.written(place)), isMiddle);
    return isMiddle ? index + 1 : index;
  }

  private removeHandle(index: number): void {
    const remove = this.currentHandles()[index]?.remove;
    if (remove) this.change(remove(), true);
  }

  private change(region: Region, rebuild: boolean): void {
    if (!this.edited) return;
    const { change } = this.edited;
    this.edited = { region, change };
    if (rebuild) this.edit(region, change);
    else {
      this.stage.setDraft(region);
      this.placeHandles();
    }
    change(region);
  }

  private placeHandles(): void {
    this.currentHandles().forEach((handle, i) => {
      const button = this.handles.children[i] as HTMLElement | undefined;
      if (!button) return;
      const [x, y] = this.stage.project(handle.at);
      button.style.transform = `translate(${x}px, ${y}px)`;
      button.hidden = handle.side !== undefined && this.pixelsBetween(...handle.side) < SHORTEST_SIDE_PIXELS;
    });
  }

  private pixelsBetween(from: Point, to: Point): number {
    const [[x0, y0], [x1, y1]] = [this.stage.project(from), this.stage.project(to)];
    return Math.hypot(x1 - x0, y1 - y0);
  }

  private add(place: Point): void {
    if (!this.shape) return;
    const [first] = this.points;
    if (this.shape === "polygon" && first && this.points.length > 2) {
      const [x, y] = this.stage.project(first);
      if (Math.hypot(place[0] - x, place[1] - y) < CLOSE_PIXELS) return this.finish();
    }
    this.points.push(this.written(place));
    if (this.shape !== "polygon" && this.points.length === 2) return this.finish();
    this.sketch(null);
  }

  private point(place: Point): void {
    this.sketch(this.stage.unproject(...place));
  }

  private undo(): void {
    this.points.pop();
    this.sketch(null);
  }

  private finish(): void {
    const region = this.region();
    if (!region) {
      setText(this.hint, this.shape === "polygon" ? "A polygon needs three corners." : "Two points are needed.");
      return;
    }
    const { done } = this;
    this.cancel();
    done(region);
  }

  private region(): Region | null {
    const { feed } = this.stage;
    const [a, b] = this.points;
    if (!feed || !a || !b) return null;
    const { lonlat, dimensions } = feed.setup;
    const fold = ([x, y]: Point): Point => (lonlat ? [wrap(x), y] : [x, y]);
    switch (this.shape) {
      case "polygon":
        return this.points.length > 2 ? { polygon: this.points.map(fold) } : null;
      case "circle":
        return { circle: { center: fold(a), radius: radiusTo(a, b, lonlat) } };
      case "box": {
        const [left, right] = [Math.min(a[0], b[0]), Math.max(a[0], b[0])];
        return {
          box: {
            [dimensions[0] ?? ""]: lonlat ? [wrap(left), wrap(right)] : [left, right],
            [dimensions[1] ?? ""]: [Math.min(a[1], b[1]), Math.max(a[1], b[1])],
          },
        };
      }
    }
    return null;
  }

  /** Returns the numbers of a place, with as many digits as a pixel is worth. */
  private written(place: Point): Point {
    const [x, y] = this.stage.unproject(...place);
    const [x1, y1] = this.stage.unproject(place[0] + 1, place[1] + 1);
    return [roundTo(x, x1 - x), roundTo(y, y1 - y)];
  }

  private key(event: KeyboardEvent): void {
    if (!this.shape || event.key !== "Enter") return;
    event.preventDefault();
    const { clientWidth, clientHeight } = this.stage.element;
    this.add([clientWidth / 2, clientHeight / 2]);
  }

  private sketch(pointer: Point | null): void {
    this.stage.layer.sketch = { points: this.points, pointer, cross: true };
    this.stage.layer.draw();
  }
}
