"""The endless answer with the updates, and how many browsers have one."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from bmq.view.live_state import LiveState, Seen

INTERVAL_SECONDS = 0.25  # four updates a second look like movement; more would cost the browser more than they show
SEND_SECONDS = 60.0  # a browser that has taken nothing for so long sleeps or is gone; it asks anew when it wakes up
MOST_BROWSERS = 50
_COUNTS_EVERY = 4  # updates


class UpdateStreams:
    """Makes the streams of updates.

    Parameters
    ----------
    setup : what a page needs once.
    send_seconds : after so long without progress a stream ends.
    """

    def __init__(self, state: LiveState, setup: dict[str, Any], send_seconds: float = SEND_SECONDS) -> None:
        self.n_browsers = 0
        self._state = state
        self._setup = setup
        self._send_seconds = send_seconds
        self._ending = False

    def end(self) -> None:
        """End all streams, so that the server can stop."""
        self._ending = True

    def open(self) -> StreamingResponse | None:
        """Return a new stream, or None if there are too many."""
        if self.n_browsers >= MOST_BROWSERS:
            return None
        self.n_browsers += 1
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return _Stream(self._updates(), headers, self._send_seconds, self._leave)

    def _leave(self) -> None:
        self.n_browsers -= 1

    async def _updates(self) -> AsyncIterator[bytes]:
        """Yield updates until the browser goes away; the next one is made when the browser has received this one."""
        seen, n = Seen(), 0
        yield b"retry: 1000\n\n" + _sent("setup", self._setup)
        while not self._ending:
            if self._state.has_forgotten(seen):  # the page begins anew with each setup
                seen = Seen()
                yield _sent("setup", self._setup)
            update, seen = await run_in_threadpool(self._next, seen, with_counts=n % _COUNTS_EVERY == 0)
            n += 1
            yield update
            await asyncio.sleep(INTERVAL_SECONDS)

    def _next(self, seen: Seen, *, with_counts: bool) -> tuple[bytes, Seen]:
        update, now_seen = self._state.update_since(seen, with_counts=with_counts)
        return _sent("update", update), now_seen


class _Stream(StreamingResponse):
    """An answer that ends if the browser takes nothing of it.

    Parameters
    ----------
    leave : is called when the answer has ended, however that came.
    """

    def __init__(
        self, content: AsyncIterator[bytes], headers: dict[str, str], send_seconds: float, leave: Callable[[], None]
    ) -> None:
        super().__init__(content, media_type="text/event-stream", headers=headers)
        self._send_seconds = send_seconds
        self._leave = leave

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_stuck = False

        async def send_in_time(message: Message) -> None:
            nonlocal is_stuck
            if is_stuck:
                return
            try:
                await asyncio.wait_for(send(message), self._send_seconds)
            except TimeoutError:
                is_stuck = True
                raise

        try:
            await super().__call__(scope, receive, send_in_time)
        except Exception:  # the library may wrap the TimeoutError
            if not is_stuck:
                raise
        finally:
            self._leave()


def _sent(name: str, value: Any) -> bytes:
    return b"event: " + name.encode() + b"\ndata: " + msgspec.json.encode(value) + b"\n\n"
