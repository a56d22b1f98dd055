// A drag, followed on the window: the element under the pointer may be made anew meanwhile.

const FIRST_PIXELS = 3; // a hand moves a little in a click

// Only the first button drags. `done` is not called where the browser takes the pointer away, for a scroll or a gesture.
export function follow(down: PointerEvent, move: (event: PointerEvent) => void, done: () => void = () => undefined): void {
  if (down.button !== 0) return;
  let isDrag = false;
  const moved = (event: PointerEvent): void => {
    if (event.pointerId !== down.pointerId) return;
    isDrag ||= Math.hypot(event.clientX - down.clientX, event.clientY - down.clientY) >= FIRST_PIXELS;
    if (isDrag) move(event);
  };
  const ended = (event: PointerEvent): void => {
    if (event.pointerId !== down.pointerId) return;
    window.removeEventListener("pointermove", moved);
    window.removeEventListener("pointerup", ended);
    window.removeEventListener("pointercancel", ended);
    if (event.type === "pointerup") done();
  };
  window.addEventListener("pointermove", moved);
  window.addEventListener("pointerup", ended);
  window.addEventListener("pointercancel", ended);
}
