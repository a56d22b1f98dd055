"""An archive of the compiled kernels: `spark-submit --archives` ships it, so that no executor compiles.

    bmq-kernels.tar.gz
      kernels/<digest of the sources>/     as in the cache folder; numba names the CPU in each index
        called-….pickle                    what an executor loads before its first task (`job.kernel_list`)

An executor with other sources or another CPU finds nothing in it, and compiles.
"""

import json
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numba
from numba import config

from bmq.errors import ConfigError, SetupError
from bmq.folders import cache_folder
from bmq.job.kernel_list import is_listed
from bmq.job.warmup import load_for_forks
from bmq.kernels.cache_locator import PackageLocator
from bmq.kernels.tables.hashing import shards_of

REPORT = "from bmq.job.kernel_archive import report; report()"


def write_archive(path: Path) -> int:
    """Compile what the cache does not have, write the archive, and return its bytes.

    Another process loads the kernels and says where they are: this one may have changed numba's cache folder.

    Raises
    ------
    ConfigError : NUMBA_CACHE_DIR or other locators are set, or numba is too old: the cache has paths of this machine.
    SetupError : the kernels cannot be loaded, or the archive cannot be written.
    """
    if "NUMBA_CACHE_DIR" in os.environ:
        raise ConfigError("NUMBA_CACHE_DIR is set, and such a cache cannot travel. Unset it; BMQ_CACHE_DIR may be set.")
    for _ in range(2):  # a process that compiles something writes no list
        done = subprocess.run([sys.executable, "-c", REPORT], stdout=subprocess.PIPE, check=False)
        if done.returncode:
            raise SetupError("The kernels cannot be loaded; the lines above have the reason.")
        found = json.loads(done.stdout.splitlines()[-1])
        if found["listed"]:
            break
    else:
        raise SetupError("The kernels were loaded, but no list of them was written: look at BMQ_CACHE_DIR.")
    if not found["travels"]:
        raise ConfigError(
            f"This numba ({numba.__version__}) names its cache by paths of this machine, so it cannot travel. Unset "
            "NUMBA_CACHE_LOCATOR_CLASSES, or install a newer numba."
        )
    folder = Path(found["folder"])
    return write([(folder, folder.relative_to(cache_folder()))], path)


def report() -> None:
    """Load the kernels as a daemon does; print the folder, whether a list is there, and whether the folder travels."""
    load_for_forks()
    kernel: Any = shards_of  # numba has no other way to its locator
    found = {
        "folder": config.CACHE_DIR,  # type: ignore[attr-defined]  # set at run time
        "listed": is_listed(),
        "travels": isinstance(kernel._cache._impl.locator, PackageLocator),  # noqa: SLF001
    }
    print(json.dumps(found))


def write(members: Iterable[tuple[Path, Path]], path: Path) -> int:
    """Write an archive as `pack` does, and return its bytes.

    Raises
    ------
    SetupError : it cannot be written.
    """
    try:
        pack(members, path)
    except OSError as error:
        raise SetupError(f"{path} cannot be written ({error}). Name a file in a folder where you may write.") from error
    return path.stat().st_size


def pack(members: Iterable[tuple[Path, Path]], path: Path) -> None:
    """Write files and whole folders, each with its name, to an archive, which is whole when it has its own name."""
    with tempfile.NamedTemporaryFile(dir=path.absolute().parent, delete=False) as file:
        try:
            with tarfile.open(fileobj=file, mode="w:gz", compresslevel=1) as archive:
                for member, name in members:
                    archive.add(member, name)
            os.replace(file.name, path)
        except BaseException:
            os.unlink(file.name)
            raise
    path.chmod(0o644)  # it has no secrets, and other users' executors may read it
