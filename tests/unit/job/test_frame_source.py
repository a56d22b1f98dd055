"""How the process of a reader ends."""

import subprocess
import sys

import pytest

# As Spark's own process does it: the reader is stopped last, and the error goes on from there.
ENDING = """
from bmq.job.source.rehearsal_source import RehearsalReader
try:
    raise {error}("said by the test")
finally:
    RehearsalReader(None).stop()
"""


@pytest.mark.parametrize(("error", "code", "says"), [("EOFError", 0, False), ("ValueError", 1, True)])
def test_only_the_end_of_the_connection_ends_a_reader_silently(error: str, code: int, says: bool) -> None:
    run = subprocess.run(
        [sys.executable, "-c", ENDING.format(error=error)], capture_output=True, text=True, timeout=120
    )

    assert (run.returncode, "Traceback" in run.stderr) == (code, says)
