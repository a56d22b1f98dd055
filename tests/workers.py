"""How `pytest -n` shares the tests among its workers: all that need Kafka or Spark to one, the others file by file.

One worker then starts one Kafka, and at most one service runs at a time. A file stays together because its tests share
fixtures of the module.
"""

import pytest
from xdist.scheduler import LoadScopeScheduling

# In the order of the run. The longest goes first, and the shortest files last, so that the workers end together.
FOLDERS = ("spark", "kafka", "docs", "property", "unit", "issues")
ON_ONE_WORKER = ("spark", "kafka")


class FoldersAndFiles(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    """Gives each worker the next file, or all of ``ON_ONE_WORKER``, in the order of collection."""

    def __init__(self, config: pytest.Config) -> None:
        super().__init__(config)
        # xdist would begin with the files that have most tests; ours with most tests are fast.
        config.option.loadscopereorder = False

    def _split_scope(self, nodeid: str) -> str:
        path = nodeid.partition("::")[0]
        return "one worker" if path.removeprefix("tests/").partition("/")[0] in ON_ONE_WORKER else path
