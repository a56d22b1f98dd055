"""When each query with a life time ends: due by slot, the next one first."""

import heapq

from bmq.records import NEVER

# An edit leaves a stale entry in the heap. With more than this many stale entries beyond one for each due, the heap is
# rebuilt.
STALE_MOST = 64


class DueQueries:
    """For each query slot the epoch ms at which the query ends. O(log n) a change, amortised."""

    def __init__(self) -> None:
        self._dues: dict[int, int] = {}
        self._heap: list[tuple[int, int]] = []  # (due, slot); an entry is stale if `_dues` has another due for the slot

    def set(self, slot: int, due: int) -> None:
        """Set when the query in ``slot`` ends, epoch ms; NEVER: it does not end, or the time is not known yet."""
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
        """Return when the query in ``slot`` ends, epoch ms; NEVER: no due is set."""
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
        """Return whether some due may be before ``settled``; a stale entry may give a false alarm. O(1)."""
        return bool(self._heap) and self._heap[0][0] < settled
