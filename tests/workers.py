"""How `pytest -n` shares the tests among its workers, file by file: a file's tests share fixtures of the module.

Files of services start Kafka or Spark; a service keeps a core busy or two. So one worker runs these from the beginning,
and a second one when no other file is left. More than two services never run at once.
"""

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

# In the order of the run. The longest part begins, and the shortest files come last, so that the workers end together.
FOLDERS = ("cluster", "storage", "spark", "browser", "kafka", "docs", "property", "unit", "issues")
OF_SERVICES = (
    "tests/cluster/",
    "tests/storage/",
    "tests/spark/",
    "tests/browser/",
    "tests/kafka/",
    "tests/docs/test_readme.py",
    "tests/docs/test_tutorials.py",
)
SERVICE_WORKERS = 2


class FoldersAndFiles(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    """Gives each worker the next file of its kind, in the order of collection; later one of the other kind."""

    def __init__(self, config: pytest.Config, log: Producer) -> None:
        super().__init__(config, log)
        # xdist would begin with the files that have most tests; ours with most tests are fast.
        config.option.loadscopereorder = False

    def _split_scope(self, nodeid: str) -> str:
        return nodeid.partition("::")[0]

    def _assign_work_unit(self, node: WorkerController) -> None:
        # xdist puts back all files of a worker that crashed; one that has no test left would leave its worker waiting.
        for file in [file for file, tests in self.workqueue.items() if all(tests.values())]:
            del self.workqueue[file]
        workers = [worker for worker in self.assigned_work if not worker.shutting_down]
        file = self._next_file(workers.index(node))
        if file is None:
            node.shutdown()
            return
        self.workqueue.move_to_end(file, last=False)
        super()._assign_work_unit(node)

    def _next_file(self, worker: int) -> str | None:
        """Return the next file for a worker by its place among the workers; None: there is none for it."""
        of_services = [file for file in self.workqueue if file.startswith(OF_SERVICES)]
        others = [file for file in self.workqueue if not file.startswith(OF_SERVICES)]
        if worker >= SERVICE_WORKERS:
            return next(iter(others), None)
        return next(iter(of_services + others if worker == 0 else others + of_services), None)
