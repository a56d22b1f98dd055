"""An image whose kernels were compiled at build compiles nothing at its first batch."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kernels import Report, kept_report

# Unless `make` compiled everything before: three minutes of one core, and more where others have it, too.
pytestmark = pytest.mark.timeout(900)

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def looks(tmp_path_factory: pytest.TempPathFactory) -> list[Report]:
    """What two processes found that began, one after the other, with an empty cache."""
    environment = {name: text for name, text in os.environ.items() if name != "NUMBA_CACHE_DIR"} | {
        "PYTHONPATH": os.pathsep.join((str(ROOT / "service"), str(ROOT)))
    }
    must_compile = os.environ.keys() & {"NUMBA_CACHE_DIR", "BMQ_TEST_COLD_KERNELS"}
    kept = None if must_compile else kept_report()
    if kept is None:
        environment["BMQ_CACHE_DIR"] = str(tmp_path_factory.mktemp("cache"))
    command = [sys.executable, "-m", "tests.kernels"]
    reports = [] if kept is None else [kept]
    while len(reports) < 2:
        run = subprocess.run(command, env=environment, check=True, capture_output=True)
        reports.append(Report(**json.loads(run.stdout)))
    return reports


def test_no_kernel_stays_cold(looks: list[Report]) -> None:
    first, _ = looks

    assert first.n_events
    assert first.cold == []


def test_the_next_process_compiles_nothing(looks: list[Report]) -> None:
    first, second = looks

    assert first.compiled
    assert second.compiled == []
    assert second.loaded
