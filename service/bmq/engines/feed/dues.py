"""When each query with a life time ends: due by slot, the next one first."""

import heapq

from bmq.records import NEVER

STALE_MOST = 64  # entries that are no longer so, beside as many as there are dues: an edit makes one


class DueQueries:
    """Query slots and the epoch ms at which they end. O(log n) a change, amortised."""

    def __init__(self) -> None:
        self._dues: dict[int, int] = {}
        self._heap: list[tuple[int, int]] = []  # may hold entries that are no longer so

    def set(self, slot: int, due: int) -> None:
        """Let the query in ``slot`` end at ``due``; NEVER: not at all, or not known yet."""
        if due == NEVER:
            self.remove(slot)
        elif self._dues.get(slot) != due:
            self._dues[slot] = due
            heapq.heappush(self._heap, (due, slot))
            if len(self._heap) > 2 * len(self._dues) + STALE_MOST:
                self._heap = [(due, slot) for slot, due in self._dues.items()]
                heapq.heapify(self._heap)

    def remove(self, slot: int) -> None:
        """Forget a slot."""
        self._dues.pop(slot, None)

    def of(self, slot: int) -> int:
        """Return the due of a slot, NEVER if there is none."""
        return self._dues.get(slot, NEVER)

    def passed(self, settled: int) -> list[tuple[int, int]]:
        """Return and forget all (due, slot) with ``due < settled``, ascending."""
        passed = []
        while self._heap and self._heap[0][0] < settled:
            due, slot = heapq.heappop(self._heap)
            if self._dues.get(slot) == due:
                del self._dues[slot]
                passed.append((due, slot))
        return passed

    def any_passed(self, settled: int) -> bool:
        """Return whether some due may be before ``settled``. O(1)."""
        return bool(self._heap) and self._heap[0][0] < settled
