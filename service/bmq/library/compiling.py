"""A message when a kernel is compiled, so that the first use does not look as if it hung.

numba keeps compiled kernels in a folder, so a machine compiles each kernel once.
"""

import logging
from typing import Any

from numba import config
from numba.core import event

_log = logging.getLogger("bmq")


class _FirstCompilation(event.Listener):
    """Says once in a process that kernels of this package are compiled; numba calls it for every function."""

    def __init__(self) -> None:
        self._has_said = False

    def on_start(self, event: Any) -> None:
        """Log the message, unless the function is not of this package."""
        function = event.data["dispatcher"].py_func
        if self._has_said or not (function.__module__ or "").startswith("bmq."):
            return
        self._has_said = True
        _log.warning(
            "Compiling kernels for the first time on this machine: seconds for each, some minutes for all. They are "
            "kept in %s.",
            getattr(config, "CACHE_DIR", "") or "numba's cache folder",
        )

    def on_end(self, event: Any) -> None:
        """Do nothing: kernels are compiled one after the other as they are needed, and none is the last."""


_listener = _FirstCompilation()
event.register("numba:compile", _listener)  # type: ignore[no-untyped-call]  # numba has no types
