"""The message about compilation: once in a process, for kernels of this package alone."""

import os
import subprocess
import sys
from pathlib import Path

CODE = """
import numba, numpy
import bmq.library.compiling

@numba.njit
def of_the_user(x):
    return x + 1

of_the_user(1)
print("before", flush=True, file=__import__("sys").stderr)
from bmq.kernels.tables.hashing import hash_ids
for kind in (numpy.int64, numpy.int32):
    hash_ids(numpy.array([0, 1], kind), numpy.zeros(1, numpy.uint8))
"""


def test_the_first_compilation_says_so_once(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", CODE],
        capture_output=True,
        text=True,
        timeout=300,
        env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)},
    )

    assert ran.returncode == 0, ran.stderr
    first, second = ran.stderr.splitlines()
    assert first == "before"
    assert second.startswith("Compiling kernels for the first time on this machine")
    assert second.endswith(f"kept in {tmp_path}.")
