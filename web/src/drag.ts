// A drag, followed on the window: the element under the pointer may be made anew meanwhile.

export function follow(down: PointerEvent, move: (event: PointerEvent) => void, done: () => void = () => undefined): void {
  const moved = (event: PointerEvent): void => {
    if (event.pointerId === down.pointerId) move(event);
  };
  const ended = (event: PointerEvent): void => {
    if (event.pointerId !== down.pointerId) return;
    window.removeEventListener("pointermove", moved);
    window.removeEventListener("pointerup", ended);
    window.removeEventListener("pointercancel", ended);
    done();
  };
  window.addEventListener("pointermove", moved);
  window.addEventListener("pointerup", ended);
  window.addEventListener("pointercancel", ended);
}
