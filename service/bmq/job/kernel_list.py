"""The list of the compiled kernels that the service calls, so that a process loads them without a warm-up.

numba caches a compiled kernel by the types of its arguments. A warm-up (`job.warmup`) finds these types by sending
readings through the whole service, which takes four times as long as to load the kernels. So the first warm-up that
compiles nothing writes a list beside the cache, and later processes load what is in it. Each executor of a cluster
starts such a process, and a batch may wait for it.
"""

import hashlib
import importlib
import logging
import os
import pickle
import pkgutil
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import numba
from numba import config
from numba.core.dispatcher import Dispatcher

import bmq
import bmq.kernels

Signatures = dict[str, list[Any]]  # module and name of a kernel -> its tuples of argument types

_log = logging.getLogger(__name__)


def is_listed() -> bool:
    """Return whether there is a list."""
    return _path().exists()


def load_listed() -> bool:
    """Load the listed kernels, and compile those that the cache does not have; return whether a list was followed."""
    path = _path()
    if config.DISABLE_JIT or not path.exists():  # type: ignore[attr-defined]  # set at run time
        return False
    try:
        listed: Signatures = pickle.loads(path.read_bytes())  # noqa: S301 - in the folder of numba's own pickles
        kernels = _kernels()
        for name, signatures in listed.items():
            for signature in signatures:
                kernels[name].compile(signature)
    except Exception as error:  # a damaged pickle raises anything; a warm-up writes a new list
        _log.debug("The list of kernels cannot be followed: %r", error)
        return False
    return True


def list_loaded() -> bool:
    """Write the list of the kernels of this process; return False if it has compiled any, or cannot write.

    To compile a kernel is to compile those that it calls. Python never calls most of them, and they are not loaded.
    """
    kernels = _kernels()
    if not kernels or any(kernel.stats.cache_misses for kernel in kernels.values()):
        return False
    loaded: Signatures = {name: list(kernel.signatures) for name, kernel in kernels.items() if kernel.signatures}
    path = _path()
    half = path.with_suffix(f".{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        half.write_bytes(pickle.dumps(loaded))
        half.replace(path)  # whole for each reader at the same time
    except OSError as error:  # numba goes on without a cache that it can write, and so does this
        _log.debug("The list of kernels cannot be written: %s", error)
        with suppress(OSError):
            half.unlink(missing_ok=True)
        return False
    return True


def _path() -> Path:
    """Return where the list of these sources and this numba is: another version may call other kernels."""
    (folder,) = bmq.__path__
    digest = hashlib.sha256(f"{numba.__version__} {sys.version}".encode())
    for source in sorted(Path(folder).rglob("*.py")):
        digest.update(source.read_bytes())
    return Path(config.CACHE_DIR) / f"called-{digest.hexdigest()[:16]}.pickle"  # type: ignore[attr-defined]  # set at run time


def _kernels() -> dict[str, Any]:
    return {
        f"{info.name}.{name}": kernel
        for info in pkgutil.walk_packages(bmq.kernels.__path__, "bmq.kernels.")
        for name, kernel in vars(importlib.import_module(info.name)).items()
        if isinstance(kernel, Dispatcher)
    }
