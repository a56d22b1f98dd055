"""The servers, one of each for all tests of the folder."""

import os
from collections.abc import Iterator

import pytest

from tests.storage.servers import S3, S3_SERVER, Hdfs, Server


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip the tests of this folder without the S3 server: all in all they take some minutes."""
    for item in items:
        if "tests/storage/" in item.nodeid and S3_SERVER not in os.environ:
            item.add_marker(pytest.mark.skip(reason=f"{S3_SERVER} names no moto_server; `make storage` runs these"))


@pytest.fixture(scope="session")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hdfs]:
    with Hdfs(tmp_path_factory.mktemp("hdfs")) as server:
        yield server


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3]:
    with S3(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture(scope="module", params=["hdfs", "s3"])
def server(request: pytest.FixtureRequest) -> Server:
    found: Server = request.getfixturevalue(request.param)
    return found
