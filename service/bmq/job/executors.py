"""Executors of a cluster load the kernels as soon as they have joined, and not in the middle of a batch.

Spark starts the daemon of an executor, which loads the kernels, with the executor's first task. A thread of the driver
sees an executor that joins, and runs a small task on it. A batch that has tasks waiting at that moment is faster.
"""

import logging
import threading
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from bmq.job.session import start_worker_daemons

LOOK_SECONDS = 0.5  # each look is a call of the JVM; a batch begins in the meantime at worst

_log = logging.getLogger(__name__)


class ExecutorWatch:
    """The thread. A failure of its tasks does not end the service: the next batch meets it, and names the cause."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._known: set[str] = set()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="executors", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """Look no more. A task that runs is not waited for, because it may have to compile."""
        self._stopping.set()

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._look()
            except (Py4JError, PySparkException, OSError) as error:
                _log.debug("New executors cannot be looked for: %s", error)
            self._stopping.wait(LOOK_SECONDS)

    def _look(self) -> None:
        now = executors(self._spark)
        joined, self._known = now - self._known, now
        if joined:
            _log.info("Executors that joined: %s. They load the kernels.", ", ".join(sorted(joined)))
            start_worker_daemons(self._spark, len(now))


def executors(spark: SparkSession) -> set[str]:
    """Return host and port of each executor that takes tasks, without the driver."""
    context: Any = spark.sparkContext._jsc
    driver = context.sc().env().blockManager().blockManagerId().hostPort()
    # An executor that has registered and is not ready yet has port 0.
    found = {f"{info.host()}:{info.port()}" for info in context.sc().statusTracker().getExecutorInfos() if info.port()}
    return found - {driver}
