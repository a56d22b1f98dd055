"""How `pytest -n` shares the tests among its workers: all that start Kafka or Spark to one, the others file by file.

One worker then has one Kafka for its tests, and at most one service runs at a time. A file stays together because its
tests share fixtures of the module.
"""

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

# In the order of the run. The longest part begins, and the shortest files come last, so that the workers end together.
FOLDERS = ("spark", "kafka", "docs", "property", "unit", "issues")
ON_ONE_WORKER = ("tests/spark/", "tests/kafka/", "tests/docs/test_readme.py")


class FoldersAndFiles(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    """Gives each worker the next file, or all of ``ON_ONE_WORKER``, in the order of collection."""

    def __init__(self, config: pytest.Config, log: Producer) -> None:
        super().__init__(config, log)
        # xdist would begin with the files that have most tests; ours with most tests are fast.
        config.option.loadscopereorder = False

    def _split_scope(self, nodeid: str) -> str:
        return "one worker" if nodeid.startswith(ON_ONE_WORKER) else nodeid.partition("::")[0]
