"""Compiled loops over arrays. Importing this package names the folder in which numba caches compiled kernels.

This package knows arrays and numbers only. It must not know Kafka, Spark, query ids or the wire format.

numba names a cached kernel after the kernel's own source file and that file's modification time. It does not notice a
change in *another* file whose kernel was compiled into this one, and would keep using the outdated machine code. So the
cache folder is named by a digest of all the sources: after an upgrade or an edit the folder is empty and numba compiles
again. The folder is outside the package because an installed package may be read-only. `cache_locator` says where in
it a kernel is, so that a cache can travel to another machine.
"""

import hashlib
import os
from pathlib import Path

from numba import config

from bmq.folders import cache_folder
from bmq.kernels.cache_locator import use_package_locator


def cache_by_sources(*folders: Path) -> None:
    """Set numba's cache folder, from now on, to one named by a digest of the sources in ``folders`` and below.

    The environment variable ``NUMBA_CACHE_DIR`` takes precedence: if it is set, this function does nothing. A package
    outside of this one that has kernels of its own calls this function with its own folder and this package's folder,
    before it imports its first kernel.
    """
    if "NUMBA_CACHE_DIR" in os.environ:
        return
    sources = sorted({source for folder in folders for source in folder.rglob("*.py")})
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:16]
    use_package_locator()
    config.CACHE_DIR = str(cache_folder() / "kernels" / digest)  # type: ignore[attr-defined]  # set at run time


KERNELS = Path(__file__).parent
cache_by_sources(KERNELS)
