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


def _digest() -> str:
    sources = sorted(Path(__file__).parent.glob("*.py"))
    return hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:16]


if "NUMBA_CACHE_DIR" not in os.environ:
    config.CACHE_DIR = str(cache_folder() / "kernels" / _digest())  # type: ignore[attr-defined]  # set at run time
