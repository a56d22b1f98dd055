"""The settings of docs/storage.md are about the jars that the tests run."""

import re
from pathlib import Path

from bmq.broker.ivy import pyspark_jars
from tests.storage.storage_jars import ABORTABLE, HADOOP_VERSION, S3A, SDK

PAGE = Path(__file__).parents[2] / "docs" / "storage.md"


def test_the_page_names_the_packages_that_the_tests_run() -> None:
    found = re.search(r"^spark\.jars\.packages +(\S+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)

    assert found is not None
    assert found[1].split(",") == [S3A[0], ABORTABLE, *SDK]


def test_hadoop_has_the_version_that_pyspark_ships() -> None:
    assert (pyspark_jars() / f"hadoop-client-api-{HADOOP_VERSION}.jar").exists()
