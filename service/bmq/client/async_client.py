"""The client for programs with asyncio: as `Client`, with `await`.

    async with AsyncClient("localhost:9092") as client:
        reply = await client.put("forties", {"kind": "border", "feed": "stocks", "region": region})
        async for event in client.events(query_id="forties", timeout=60):
            print(event.stream_id, event.sign)

Each call of `Client` runs in a thread: a reader of events has one of its own, the others those of asyncio's pool.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Self

from bmq.client.client import REPLY_TIMEOUT_SECONDS, Client, Definition, StandingQuery
from bmq.client.ledger import Report
from bmq.client.matching import matching
from bmq.client.messages import Event, JoinEvent, Member, ReplyMessage
from bmq.client.reply_collection import OnReply
from bmq.config import TopicsSection

if TYPE_CHECKING:
    import pandas


class AsyncClient:
    """Queries and events of one service; parameters, results and errors as those of `Client`."""

    def __init__(
        self,
        bootstrap_servers: str,
        options: Mapping[str, str] | None = None,
        topics: TopicsSection | None = None,
    ) -> None:
        self._client = Client(bootstrap_servers, options, topics)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Send the records that are still in the producer's queue."""
        await asyncio.to_thread(self._client.close)

    async def put(self, query_id: str, definition: Definition, wait: float = REPLY_TIMEOUT_SECONDS) -> ReplyMessage:
        """Register or replace a query and return the service's reply."""
        return await asyncio.to_thread(self._client.put, query_id, definition, wait)

    async def put_many(
        self,
        definitions: Mapping[str, Definition | None],
        wait: float = REPLY_TIMEOUT_SECONDS,
        on_reply: OnReply | None = None,
    ) -> dict[str, ReplyMessage]:
        """Register or replace many queries (None: delete) and return the replies; ``on_reply`` runs in a thread."""
        return await asyncio.to_thread(self._client.put_many, definitions, wait, on_reply)

    async def delete(self, query_id: str, wait: float = REPLY_TIMEOUT_SECONDS) -> ReplyMessage:
        """Delete a query and return the service's reply."""
        return await asyncio.to_thread(self._client.delete, query_id, wait)

    async def publish(self, commands: Mapping[str, Definition | None]) -> dict[str, int]:
        """Publish definitions (None: delete) without waiting for replies; return their control offsets."""
        return await asyncio.to_thread(self._client.publish, commands)

    async def queries(self) -> dict[str, StandingQuery]:
        """Return every query in the control topic, by id, with the last reply to it."""
        return await asyncio.to_thread(self._client.queries)

    async def members(self, query_id: str) -> list[Member]:
        """Return the streams that are inside a query now."""
        return await asyncio.to_thread(self._client.members, query_id)

    async def events(
        self,
        query_id: str | None = None,
        stream_id: str | None = None,
        *,
        from_beginning: bool = False,
        timeout: float | None = None,
        topic: str | None = None,
        group: str | None = None,
    ) -> AsyncIterator[Event | JoinEvent]:
        """Yield the events from this moment on, as `Client.events`; the moment is the first step of `async for`."""
        deadline = None if timeout is None else time.monotonic() + timeout
        make = partial(self._client.event_reader, topic=topic, group=group, from_beginning=from_beginning)
        run = asyncio.get_running_loop().run_in_executor
        # One thread, so that a poll which was cancelled here has ended before the reader is closed.
        with ThreadPoolExecutor(1) as thread:
            reader = await run(thread, make)
            try:
                while deadline is None or time.monotonic() < deadline:
                    for message in await run(thread, reader.poll):
                        for event, _ in matching([message], query_id, stream_id):
                            yield event
                        reader.mark([message])
            finally:
                await run(thread, reader.close)

    async def events_frame(
        self, query_id: str | None = None, stream_id: str | None = None, *, topic: str | None = None
    ) -> "pandas.DataFrame":
        """Return all events that the topic has now as a frame."""
        return await asyncio.to_thread(self._client.events_frame, query_id, stream_id, topic=topic)

    async def check_ledger(self, topics: Sequence[str] = (), *, from_beginning: bool = False) -> Report:
        """Check all existing events against the ledger and return a report."""
        return await asyncio.to_thread(self._client.check_ledger, topics, from_beginning=from_beginning)
