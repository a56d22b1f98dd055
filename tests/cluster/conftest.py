"""One cluster for all tests of the folder: to start it takes ten seconds."""

from collections.abc import Iterator

import pytest

from tests.cluster.standalone import Cluster


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("cluster"), n_workers=1) as cluster:
        yield cluster
