"""The list of called kernels, in processes of their own: one compiles, the next one lists, the next one loads."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

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


@pytest.mark.parametrize(("there", "damaged"), [(b"hashing", b"hushing"), (b"numba", b"nunba"), (b".", b"")])
def test_a_damaged_list_is_not_followed_and_is_written_anew(tmp_path: Path, there: bytes, damaged: bytes) -> None:
    run(tmp_path, CALL)
    run(tmp_path, CALL)
    (listed,) = tmp_path.glob("called-*.pickle")
    content = listed.read_bytes()
    assert there in content
    listed.write_bytes(content.replace(there, damaged))

    assert run(tmp_path, LOAD).startswith("False")
    assert run(tmp_path, CALL) == "True"
    assert listed.read_bytes() == content


def test_a_folder_that_cannot_be_written_gives_no_list_and_no_error(tmp_path: Path) -> None:
    run(tmp_path, CALL)
    script = (
        "from bmq.job import kernel_list; kernel_list._path = lambda: __import__('pathlib').Path('/dev/null/called')"
    )

    assert run(tmp_path, f"{script}; {CALL}") == "False"
