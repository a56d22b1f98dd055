"""Silent members: streams that were inside when a command put a query with `"initial": "silent"`.

The service emits no `+` for a silent member, and no `-` when the membership ends, for any reason. Later memberships of
the stream have events again (docs/semantics.md). The members are kept by id and not by slot, because the sets are small
and the state contains them as they are.
"""

from collections.abc import Iterable, Iterator, KeysView

import numpy as np

from bmq.records import Bools


class SilentMembers:
    """The silent members of one feed and shard, and what changed in them."""

    def __init__(self) -> None:
        self._streams: dict[str, set[str]] = {}
        self._changes: dict[tuple[str, str], bool] = {}

    def __bool__(self) -> bool:
        return bool(self._streams)

    def query_ids(self) -> KeysView[str]:
        """Return the queries that have a silent member."""
        return self._streams.keys()

    def is_silent(self, query_id: str, stream: str) -> bool:
        """Return whether a membership is silent."""
        return stream in self._streams.get(query_id, ())

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Yield every (query id, stream id)."""
        return ((query_id, stream) for query_id, streams in self._streams.items() for stream in streams)

    def begin_all(self, query_id: str, streams: Iterable[str]) -> None:
        """Make streams silent members of a query."""
        for stream in streams:
            self.set(query_id, stream, is_silent=True)
            self._changes[query_id, stream] = True

    def end(self, query_id: str, stream: str) -> bool:
        """End one membership; return whether it was silent."""
        if not self.is_silent(query_id, stream):
            return False
        self.set(query_id, stream, is_silent=False)
        self._changes[query_id, stream] = False
        return True

    def end_all(self, query_id: str, streams: Iterable[str]) -> Bools:
        """End memberships; return which of them were not silent and so have an event, bool[n]."""
        return np.array([not self.end(query_id, stream) for stream in streams], dtype=np.bool_)

    def set(self, query_id: str, stream: str, *, is_silent: bool) -> None:
        """Set one member without noting a change, for a replica that catches up."""
        if is_silent:
            self._streams.setdefault(query_id, set()).add(stream)
        else:
            streams = self._streams.get(query_id, set())
            streams.discard(stream)
            if not streams:
                self._streams.pop(query_id, None)

    def forget(self, query_id: str) -> None:
        """Drop all members of a query without noting a change."""
        self._streams.pop(query_id, None)

    def take_changes(self) -> dict[tuple[str, str], bool]:
        """Return (query id, stream id) -> silent now, for the members changed since the last call."""
        changes, self._changes = self._changes, {}
        return changes
