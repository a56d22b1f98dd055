"""The archive of the packages: a Python that has none of them imports from it what an executor runs."""

import os
import subprocess
import sys
import tarfile
from importlib.metadata import distributions
from pathlib import Path

import pyspark
import pytest

from bmq.errors import SetupError
from bmq.job.packages_archive import _files_of, write_packages

PROGRAM = """
import bmq, numpy, pyspark
import bmq.job.worker_daemon, bmq.job.homes, bmq.job.stateful, bmq.kafka_io.writer_process
import bmq.job.source.topic_source, bmq.job.source.range_task
for one in (bmq, numpy):
    print(one.__file__)
try:
    import pytest
except ImportError:
    print("no pytest")
"""


def test_a_package_without_a_list_of_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "old-1.dist-info").mkdir()
    (tmp_path / "old-1.dist-info" / "METADATA").write_text("Name: old\nVersion: 1\n")
    (one,) = distributions(path=[str(tmp_path)])

    with pytest.raises(SetupError, match="The package old has no list of its files"):
        list(_files_of(one))


def test_a_bare_python_has_all_that_an_executor_needs(tmp_path: Path) -> None:
    archive, unpacked = tmp_path / "packages.tar.gz", tmp_path / "unpacked"
    assert write_packages(archive) < 500_000_000
    with tarfile.open(archive) as packed:
        packed.extractall(unpacked, filter="data")
    assert not [*unpacked.glob("*.pth"), *unpacked.rglob("direct_url.json")]  # they name the checkout
    of_spark = sorted((Path(pyspark.__file__).parent / "python" / "lib").glob("*.zip"))

    done = subprocess.run(
        [os.path.realpath(sys.executable), "-S", "-c", PROGRAM],
        capture_output=True,
        text=True,
        cwd=tmp_path,  # the path is relative, as in an executor; -S: no package of the machine
        env={"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(["unpacked", *map(str, of_spark)])},
    )

    assert done.stdout.splitlines() == [
        str(unpacked / "bmq" / "__init__.py"),
        str(unpacked / "numpy" / "__init__.py"),
        "no pytest",
    ], done.stderr
