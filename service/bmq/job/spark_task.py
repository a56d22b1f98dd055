"""The task of Spark that this process runs. Imports no kernel."""

from typing import NamedTuple

from pyspark import TaskContext


class SparkTask(NamedTuple):
    """A task of the streaming query.

    Attributes
    ----------
    batch : number of the batch.
    attempt : number of this attempt; no other attempt of this driver has it.
    """

    batch: int
    attempt: int


def this_task() -> SparkTask:
    """Return the task of this process."""
    context = TaskContext.get()
    assert context is not None, "Spark runs this inside a task"
    batch = context.getLocalProperty("streaming.sql.batchId")
    assert batch is not None, "Spark names the batch of each streaming task"
    return SparkTask(int(batch), context.taskAttemptId())
