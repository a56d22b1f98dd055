"""An image whose kernels were compiled at build compiles nothing at its first batch."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

# Everything is compiled anew: two minutes of one core, and more where others have it, too.
pytestmark = pytest.mark.timeout(900)

# Says, after a warm-up, which kernels were never compiled and which were compiled and not loaded. Those that
# numba puts into their callers are compiled with these.
LOOK = """
import importlib, json, pkgutil
from numba.core.dispatcher import Dispatcher
import bmq.kernels
from bmq.job.warmup import warm_up

# Only benches decompose regions into constructs that overlap.
UNUSED = ("virtual_constructs.count_overlapped", "virtual_constructs.cut_overlapped")
n_events = warm_up()
kernels = {
    f"{info.name}.{name}": kernel
    for info in pkgutil.walk_packages(bmq.kernels.__path__, "bmq.kernels.")
    for name, kernel in vars(importlib.import_module(info.name)).items()
    if isinstance(kernel, Dispatcher) and kernel.targetoptions.get("inline") != "always"
}
print(json.dumps({
    "events": n_events,
    "cold": [name for name, kernel in kernels.items() if not kernel.signatures and name not in UNUSED],
    "compiled": [name for name, kernel in kernels.items() if kernel.stats.cache_misses],
}))
"""


@pytest.fixture(scope="module")
def looks(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, object]]:
    """What two processes found that began, one after the other, with an empty cache."""
    environment = {name: text for name, text in os.environ.items() if name != "NUMBA_CACHE_DIR"} | {
        "BMQ_CACHE_DIR": str(tmp_path_factory.mktemp("cache")),
        "PYTHONPATH": str(Path(__file__).parents[2] / "service"),
    }
    command = [sys.executable, "-c", LOOK]
    runs = [subprocess.run(command, env=environment, check=True, capture_output=True) for _ in range(2)]
    return [json.loads(run.stdout) for run in runs]


def test_no_kernel_stays_cold(looks: list[dict[str, object]]) -> None:
    first, _ = looks

    assert first["events"]
    assert first["cold"] == []


def test_the_next_process_compiles_nothing(looks: list[dict[str, object]]) -> None:
    first, second = looks

    assert first["compiled"]
    assert second["compiled"] == []
