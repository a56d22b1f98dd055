"""One cluster for all tests of the folder: to start it takes ten seconds."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bmq.job.kernel_archive import write_archive
from tests.cluster.standalone import Cluster


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("cluster"), n_workers=1) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The archive of `bmq package`."""
    path = tmp_path_factory.mktemp("package") / "bmq-kernels.tar.gz"
    write_archive(path)
    return path
