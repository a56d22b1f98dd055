"""The settings of docs/storage.md are about the jars that the tests run."""

import re
from pathlib import Path

from bmq.broker.ivy import pyspark_jars
from tests.storage.storage_jars import ABORTABLE, HADOOP_VERSION, S3A, SDK

PAGE = Path(__file__).parents[2] / "docs" / "storage.md"


def test_the_page_names_the_packages_that_the_tests_run() -> None:
    settings = dict(re.findall(r"^(spark\.jars\S*) +(\S+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE))
    _, name, version = ABORTABLE.split(":")

    assert settings["spark.jars.packages"].split(",") == [S3A[0], *SDK]
    assert settings["spark.jars"].endswith(f"/{name}-{version}.jar")


def test_hadoop_has_the_version_that_pyspark_ships() -> None:
    assert (pyspark_jars() / f"hadoop-client-api-{HADOOP_VERSION}.jar").exists()
