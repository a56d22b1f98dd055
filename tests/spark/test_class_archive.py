"""A JVM maps the archive of classes that the set-up wrote, and starts as ever with a file that is no archive."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bmq.job.class_archive import class_archive

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

# A process of its own for each: a process has one JVM.
LOOK = """
from pathlib import Path
from pyspark import SparkContext
from bmq.job.session import make_session
session = make_session(1)
print(session.range(3).count())
print(Path(f"/proc/{SparkContext._gateway.proc.pid}/maps").read_text())
"""


def looked(cache: Path) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"BMQ_CACHE_DIR": str(cache)}
    run = subprocess.run([sys.executable, "-c", LOOK], env=environment, capture_output=True, text=True, timeout=250)
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith("3\n")
    return run


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """A cache folder with the jars of the real one, and no archive."""
    real = class_archive().parents[1]
    (tmp_path / "archives").mkdir()
    for name in ("jars", "ivy"):
        (tmp_path / name).symlink_to(real / name)
    return tmp_path


@pytest.mark.skipif(not class_archive().is_file(), reason="make writes the archive before the tests")
def test_the_archive_is_mapped() -> None:
    run = looked(class_archive().parents[1])

    assert str(class_archive()) in run.stdout


def test_a_file_that_is_no_archive_changes_nothing(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BMQ_CACHE_DIR", str(cache))
    archive = class_archive()
    archive.write_bytes(b"half of an archive" * 1000)

    run = looked(cache)

    assert str(archive) not in run.stdout
    assert "archive" not in run.stderr
    assert "shared class" not in run.stderr.lower()
