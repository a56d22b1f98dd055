"""Compiled loops over arrays. Importing this package says where numba keeps what it has compiled.

numba keeps a kernel under its own file's name and time. It does not see that a kernel in *another* file, which was
compiled into it, has changed, and would go on with the old one. So the cache is a folder named by all the sources:
another version, or an edit, finds it empty. It is outside the package, since an installed package may be read-only.
"""

import hashlib
import os
from pathlib import Path

from numba import config

from bmq.folders import cache_folder


def cache_by_sources(*folders: Path) -> None:
    """Let numba keep what is compiled from now on in a folder named by the sources in ``folders`` and below.

    A package outside with kernels of its own calls it with its folder and this one's, before it has any.
    """
    if "NUMBA_CACHE_DIR" in os.environ:
        return
    sources = sorted({source for folder in folders for source in folder.rglob("*.py")})
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:16]
    config.CACHE_DIR = str(cache_folder() / "kernels" / digest)  # type: ignore[attr-defined]  # set at run time


KERNELS = Path(__file__).parent
cache_by_sources(KERNELS)
