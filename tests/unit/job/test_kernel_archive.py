"""The archive of the compiled kernels: it serves another copy of the package, at another place, from another folder."""

import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from numba import config

from bmq.errors import ConfigError
from bmq.job.kernel_archive import pack, write_archive

SERVICE = Path(__file__).parents[3] / "service"
CALL = """
import numpy as np
from bmq.kernels.tables.hashing import shards_of
shards_of(np.arange(3, dtype=np.uint64), 2)
print(sum(shards_of.stats.cache_misses.values()), shards_of.py_func.__code__.co_filename)
"""


def call(cache: Path, service: Path) -> tuple[int, str]:
    """Call a kernel of a copy of the package; return how often it was compiled, and its file."""
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    environment |= {"BMQ_CACHE_DIR": str(cache), "PYTHONPATH": str(service)}
    done = subprocess.run([sys.executable, "-c", CALL], capture_output=True, text=True, check=True, env=environment)
    misses, file = done.stdout.split()
    return int(misses), file


def test_an_archive_serves_a_copy_of_the_package_at_another_place(tmp_path: Path) -> None:
    here, there, copied = tmp_path / "here", tmp_path / "there", tmp_path / "site-packages"
    shutil.copytree(SERVICE / "bmq", copied / "bmq", copy_function=shutil.copyfile)  # with other times

    assert call(here, SERVICE)[0] == 1
    pack([(here / "kernels", Path("kernels"))], tmp_path / "kernels.tar.gz")
    with tarfile.open(tmp_path / "kernels.tar.gz") as archive:
        archive.extractall(there, filter="data")

    assert call(there, copied) == (0, str(copied / "bmq" / "kernels" / "tables" / "hashing.py"))


def test_the_archive_has_the_kernels_of_the_service_whatever_this_process_caches_where(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path / "of-a-bench"))

    assert write_archive(tmp_path / "kernels.tar.gz") > 1_000_000
    with tarfile.open(tmp_path / "kernels.tar.gz") as archive:
        names = archive.getnames()
    assert sum(name.endswith(".nbc") for name in names) > 100
    assert any(Path(name).name.startswith("called-") for name in names)


def test_an_archive_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        pack([(tmp_path / "nowhere", Path("kernels"))], tmp_path / "kernels.tar.gz")

    assert list(tmp_path.iterdir()) == []


def test_a_cache_of_numba_itself_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))

    with pytest.raises(ConfigError, match="NUMBA_CACHE_DIR"):
        write_archive(tmp_path / "kernels.tar.gz")
