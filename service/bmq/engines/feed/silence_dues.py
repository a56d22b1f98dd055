"""For each `stream_ttl`, a time before which no stream falls silent by it.

A batch compares all streams with the clock only if the settled time is beyond this time. The module knows times, and
no streams or queries.
"""

from collections.abc import Sequence

import numpy as np

from bmq.engines.feed.query_table import FOREVER
from bmq.records import NEVER, Int64s

# Distinct `stream_ttl` that are remembered. Queries come and go, so without a limit the table would grow for ever. If
# more are in use, each batch compares all streams with the clock.
DUES_MOST = 10_000


class SilenceDues:
    """The earliest time at which some stream may fall silent, by `stream_ttl`. Times are epoch ms."""

    def __init__(self) -> None:
        self._dues: dict[int, int] = {}  # ms -> epoch ms; absent: not known

    def __bool__(self) -> bool:
        """Whether any time is known, so that readings may change it."""
        return bool(self._dues)

    def take(self, silent_since: Int64s) -> None:
        """Note from when the silence of streams with new readings counts, int64[n], as in the stream table."""
        if silent_since.size:
            earliest = int(silent_since.min())
            self._dues = {ttl: min(due, earliest + ttl) for ttl, due in self._dues.items()}

    def forget(self) -> None:
        """Forget all times, because something other than readings changed the streams."""
        self._dues.clear()

    def passed(self, ttls: Sequence[int], settled: int) -> list[int]:
        """Return the ttls by which some stream may have fallen silent before ``settled``."""
        return [ttl for ttl in ttls if self._dues.get(ttl, NEVER) < settled]

    def set(self, ttl: int, silent_since: Int64s, settled: int) -> None:
        """Note that the batch handles every stream that falls silent by ``ttl`` before ``settled``.

        Parameters
        ----------
        silent_since : int64[streams], of the stream table.
        """
        if len(self._dues) > DUES_MOST:
            self._dues.clear()
        least = int(np.min(silent_since, where=silent_since >= settled - ttl, initial=FOREVER))
        self._dues[ttl] = FOREVER if least == FOREVER else least + ttl

    def _check(self, silent_since: Int64s, settled: int) -> None:
        """State every invariant; for tests."""
        for ttl, due in self._dues.items():
            pending = silent_since[silent_since >= settled - ttl]
            assert (pending >= due - ttl).all(), "a stream falls silent before the time that is remembered"
