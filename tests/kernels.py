"""Warms up and reports which kernels that compiled, and which it loaded from the cache.

`make` runs it before the tests and keeps the report, so that a test need not compile every kernel once more.
"""

import hashlib
import importlib
import json
import pkgutil
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from numba.core.dispatcher import Dispatcher

import bmq
import bmq.kernels
from bmq.job.warmup import warm_up

REPORT = Path(__file__).parents[1] / ".make" / "kernels.json"


@dataclass(frozen=True)
class Report:
    """What a process found after its warm-up.

    Attributes
    ----------
    sources : a digest of the service's sources.
    n_events : how many events came out.
    cold : kernels that were neither compiled nor loaded. numba loads only those that Python calls: the kernels inside
        are compiled into them. So the list is right only if nothing was loaded.
    compiled, loaded : kernels that were compiled, and those that the cache had.
    """

    sources: str
    n_events: int
    cold: list[str]
    compiled: list[str]
    loaded: list[str]


def sources_digest() -> str:
    """Return what differs if any source of the service differs."""
    (folder,) = bmq.__path__
    return hashlib.sha256(b"".join(path.read_bytes() for path in sorted(Path(folder).rglob("*.py")))).hexdigest()


def look() -> Report:
    """Warm up, and report what that did."""
    n_events = warm_up()
    kernels = {
        f"{info.name.rpartition('.')[2]}.{name}": kernel
        for info in pkgutil.walk_packages(bmq.kernels.__path__, "bmq.kernels.")
        for name, kernel in vars(importlib.import_module(info.name)).items()
        if isinstance(kernel, Dispatcher) and kernel.targetoptions.get("inline") != "always"
    }
    return Report(
        sources_digest(),
        n_events,
        [name for name, kernel in kernels.items() if not kernel.signatures],
        [name for name, kernel in kernels.items() if kernel.stats.cache_misses],
        [name for name, kernel in kernels.items() if kernel.stats.cache_hits],
    )


def kept_report() -> Report | None:
    """Return the report of the warm-up by `make`; None unless it compiled everything, from the sources of today."""
    try:
        report = Report(**json.loads(REPORT.read_text()))
    except (OSError, ValueError, TypeError):
        return None
    return report if report.sources == sources_digest() and not report.loaded else None


if __name__ == "__main__":
    json.dump(asdict(look()), sys.stdout)
