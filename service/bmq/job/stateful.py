"""The stateful operator as Spark sees it: one grouping key for each shard, and the state as bytes.

Spark also loads this module into a process of the driver, which asks the operator for its state and then ends. So the
module must not import a kernel; a shard's work is in `job.homes`.
"""

from collections.abc import Iterator
from typing import Any

import pandas as pd
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

from bmq.job.output import counters_row
from bmq.job.plan import Plan
from bmq.job.spark_task import this_task
from bmq.owned_process import owner_of_worker


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
        """Do nothing: only the homes remain between tasks."""

    def handleInputRows(
        self,
        key: Any,
        rows: Iterator[pd.DataFrame],
        timerValues: Any,
    ) -> Iterator[pd.DataFrame]:
        """Run one batch of one shard."""
        from bmq.job.homes import run_at_home
        from bmq.job.received import rows_of
        from bmq.job.shard_task import ShardBatch

        shard = self._plan.shard_keys.index(key[0])
        batch = ShardBatch(self._plan, shard, this_task().batch, owner_of_worker(), rows_of(rows))
        yield counters_row(shard, run_at_home(batch, self._store))
