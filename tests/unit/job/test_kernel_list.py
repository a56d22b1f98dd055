"""The list of called kernels, in processes of their own: one compiles, the next one lists, the next one loads."""

import os
import subprocess
import sys
from pathlib import Path

PRELUDE = """
import numpy as np
from bmq.job.kernel_list import list_loaded, load_listed
from bmq.kernels.tables.hashing import shards_of
"""
CALL = "shards_of(np.arange(3, dtype=np.uint64), 2); print(list_loaded())"
LOAD = "print(load_listed(), len(shards_of.signatures), sum(shards_of.stats.cache_misses.values()))"


def run(folder: Path, script: str) -> str:
    environment = os.environ | {"NUMBA_CACHE_DIR": str(folder), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE + script], capture_output=True, text=True, check=True, env=environment
    )
    return done.stdout.strip()


def test_a_process_that_compiles_nothing_lists_what_later_ones_load(tmp_path: Path) -> None:
    assert run(tmp_path, CALL) == "False"
    assert run(tmp_path, LOAD) == "False 0 0"

    assert run(tmp_path, CALL) == "True"
    assert run(tmp_path, LOAD) == "True 1 0"


def test_what_is_listed_and_not_in_the_cache_is_compiled(tmp_path: Path) -> None:
    run(tmp_path, CALL)
    run(tmp_path, CALL)
    for file in tmp_path.rglob("*.nb[ci]"):
        file.unlink()

    assert run(tmp_path, LOAD) == "True 1 1"


def test_a_damaged_list_is_none(tmp_path: Path) -> None:
    run(tmp_path, CALL)
    run(tmp_path, CALL)
    (listed,) = tmp_path.glob("called-*.pickle")
    listed.write_bytes(listed.read_bytes()[:20])

    assert run(tmp_path, LOAD) == "False 0 0"
