"""One cluster for all tests of the folder: to start it takes ten seconds."""

import os
from collections.abc import Iterator

import pytest

from bmq.job.kernel_archive import write_archive
from bmq.job.packages_archive import write_packages
from tests.cluster.standalone import Cluster
from tests.cluster.submitted import Archives


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("cluster"), n_workers=1) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def archives(tmp_path_factory: pytest.TempPathFactory) -> Archives:
    """What `bmq package` writes; the packages only for BMQ_TEST_PACKAGES=1, since each executor unpacks 215 MB."""
    folder = tmp_path_factory.mktemp("package")
    kernels, packages = folder / "bmq-kernels.tar.gz", folder / "bmq-packages.tar.gz"
    write_archive(kernels)
    if not os.environ.get("BMQ_TEST_PACKAGES"):
        return Archives(kernels)
    write_packages(packages)
    return Archives(kernels, packages)
