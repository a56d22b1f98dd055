"""`bmq.kernels`: the cache of compiled kernels is named by all sources, so an edit never meets a stale kernel."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.unit

RUN = """
import sys
from pathlib import Path
from bmq.kernels import cache_by_sources

root = Path(sys.argv[1])
cache_by_sources(root / "package")
sys.path.insert(0, str(root))
from package.caller import call
print(call())
"""
CALLER = """
from numba import njit
from package.room.callee import answer

@njit(cache=True)
def call():
    return answer()
"""
CALLEE = """
from numba import njit

@njit(cache=True)
def answer():
    return {}
"""


def test_an_edit_of_a_kernel_in_a_room_reaches_the_kernels_that_call_it(tmp_path: Path) -> None:
    package = tmp_path / "package"
    (package / "room").mkdir(parents=True)
    for folder in (package, package / "room"):
        (folder / "__init__.py").touch()
    (package / "caller.py").write_text(CALLER)

    assert answer_of(tmp_path, 1) == "1"
    assert answer_of(tmp_path, 2) == "2"


def answer_of(root: Path, number: int) -> str:
    """What the compiled caller in a process of its own says, after an edit of the callee alone."""
    (root / "package" / "room" / "callee.py").write_text(CALLEE.format(number))
    environment = {name: text for name, text in os.environ.items() if name != "NUMBA_CACHE_DIR"} | {
        "BMQ_CACHE_DIR": str(root / "cache"),
        "PYTHONPATH": str(Path(__file__).parents[3] / "service"),
    }
    command = [sys.executable, "-c", RUN, str(root)]
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout.strip()
