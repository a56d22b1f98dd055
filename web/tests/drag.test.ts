import { beforeEach, expect, test, vi } from "vitest";

import { follow } from "../src/drag";

const at = (type: string, clientX: number, button = 0): PointerEvent =>
  Object.assign(new Event(type), { pointerId: 1, clientX, clientY: 0, button }) as unknown as PointerEvent;

const send = (event: PointerEvent): boolean => window.dispatchEvent(event);

beforeEach(() => vi.stubGlobal("window", new EventTarget()));

function dragged(ending: string, button = 0): { moves: number; ends: number } {
  const move = vi.fn();
  const done = vi.fn();
  follow(at("pointerdown", 0, button), move, done);
  for (const x of [1, 5, 9]) send(at("pointermove", x, button));
  send(at(ending, 9, button));
  send(at("pointermove", 20, button));
  return { moves: move.mock.calls.length, ends: done.mock.calls.length };
}

test("a drag ends where the pointer goes up", () => {
  expect(dragged("pointerup")).toEqual({ moves: 2, ends: 1 });
});

test("a pointer that the browser takes away leaves the drag unfinished", () => {
  expect(dragged("pointercancel")).toEqual({ moves: 2, ends: 0 });
});

test("the right button drags nothing", () => {
  expect(dragged("pointerup", 2)).toEqual({ moves: 0, ends: 0 });
});
