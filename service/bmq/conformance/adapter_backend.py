"""An adapter as a back-end of the player: commands get offsets, events get ids."""

from collections.abc import Sequence

from bmq.conformance.adapter import Adapter
from bmq.conformance.event_text import Lack
from bmq.conformance.play import ControlRecord, Seen
from bmq.conformance.scenario import Json


class AdapterBackend:
    """One started system."""

    def __init__(self, adapter: Adapter) -> None:
        self._adapter = adapter
        self._n_commands = self._n_events = 0
        self._seen = Seen()

    def restart(self, how: str) -> None:
        """End the system, and start it with what it kept."""
        self._adapter.restart(how)

    def command(self, records: Sequence[ControlRecord]) -> list[int]:
        """Give commands to the system; return their numbers as offsets."""
        first = self._n_commands
        for query_id, value in records:
            answer = self._adapter.delete(query_id) if value is None else self._adapter.put(query_id, value)
            status, colon, code = answer.partition(":")
            reply: Json = {"query_id": query_id, "status": status, "control_offset": self._n_commands}
            if colon:
                reply["error"] = {"code": code}
            self._seen.replies.append(reply)
            self._n_commands += 1
        return list(range(first, self._n_commands))

    def publish(self, feed: str, values: Sequence[bytes]) -> None:
        """Send records to the system, and keep what it refused."""
        self._seen.dead += [(feed, code) for code in self._adapter.send(feed, values)]

    def settle(self) -> Seen:
        """Return what the system answered since the last call."""
        seen, self._seen = self._seen, Seen()
        for event in self._adapter.events():
            self._n_events += 1
            own = {"event_id": str(self._n_events)}
            if Lack.REASON in self._adapter.lacks:
                own["reason"] = "none"
            seen.events.append(own | event)
        return seen
