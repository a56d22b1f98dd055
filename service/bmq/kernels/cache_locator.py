"""The place of a kernel in the cache: by its folder in this package, and not by where the package is installed.

numba's own locators hash the absolute path and, in older versions, ask for the time of the file. A cache of theirs is
of no use on another machine, or after a move. This one travels: `bmq package` makes an archive of it.
"""

import hashlib
from functools import cache
from pathlib import Path
from typing import Any, Self

from numba import config
from numba.core import caching

_PACKAGE = Path(__file__).parent


class PackageLocator(caching.UserProvidedCacheLocator):
    """The locator of this package's kernels; numba asks its own ones for all other functions."""

    def __init__(self, py_func: Any, py_file: str) -> None:
        super().__init__(py_func, py_file)  # type: ignore[no-untyped-call]
        folder = Path(py_file).parent.relative_to(_PACKAGE)
        self._cache_path = str(Path(config.CACHE_DIR, folder))  # type: ignore[attr-defined]  # set at run time

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> Self | None:
        """Return the locator of a kernel; None: the function is none of this package."""
        if not Path(py_file).is_relative_to(_PACKAGE):
            return None
        found: Self | None = super().from_function(py_func, py_file)  # type: ignore[no-untyped-call]
        return found

    def get_source_stamp(self) -> bytes:
        """Return what differs if the source differs."""
        return _digest(self._py_file)


@cache
def _digest(file: str) -> bytes:
    return hashlib.sha256(Path(file).read_bytes()).digest()


def use_package_locator() -> None:
    """Let numba ask this locator first; a numba that cannot be given locators goes on with its own."""
    if not getattr(config, "CACHE_LOCATOR_CLASSES", ""):
        locators = caching.CacheImpl._locator_classes  # noqa: SLF001 - numba has no other list
        usual = (f"{caching.__name__}.{locator.__name__}" for locator in locators)
        own = f"{PackageLocator.__module__}.{PackageLocator.__name__}"
        config.CACHE_LOCATOR_CLASSES = ",".join((own, *usual))  # type: ignore[attr-defined]  # set at run time
