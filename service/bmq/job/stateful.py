"""The stateful operator as Spark sees it: one grouping key for each shard, and the state as bytes.

Spark also loads this module into a process of the driver, which asks the operator for its state and then ends. So the
module must not import a kernel; a shard's work is in `job.shard_task`.
"""

from collections.abc import Iterator
from typing import Any

import pandas as pd
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

from bmq.job.plan import Plan


class SparkStore:
    """`job.replicas.Store` over Spark's state API."""

    def __init__(self, handle: StatefulProcessorHandle) -> None:
        self._head = handle.getValueState("head", "head binary")
        self._log = handle.getMapState("log", "name string", "content binary")

    def head(self) -> bytes | None:
        """Return the head of the current key."""
        row = self._head.get()
        return None if row is None else bytes(row[0])

    def set_head(self, head: bytes) -> None:
        """Replace the head of the current key."""
        self._head.update((head,))

    def get(self, key: str) -> bytes | None:
        """Return an entry or page of the current key."""
        row = self._log.getValue((key,))
        return None if row is None else bytes(row[0])

    def put(self, key: str, value: bytes) -> None:
        """Write an entry or page of the current key."""
        self._log.updateValue((key,), (value,))

    def remove(self, key: str) -> None:
        """Remove an entry or page of the current key."""
        self._log.removeKey((key,))


class ShardProcessor(StatefulProcessor):
    """The adapter between Spark and the work of a shard."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state. Spark calls this once for each task."""
        self._store = SparkStore(handle)

    def close(self) -> None:
        """Do nothing: only the replicas remain between tasks."""

    def handleInputRows(
        self,
        key: Any,
        rows: Iterator[pd.DataFrame],
        timerValues: Any,
    ) -> Iterator[pd.DataFrame]:
        """Run one batch of one shard."""
        from bmq.job.shard_task import run_shard

        shard = self._plan.shard_keys.index(key[0])
        yield run_shard(self._plan, shard, self._store, pd.concat(rows))
