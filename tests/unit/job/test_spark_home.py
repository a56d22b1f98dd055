"""The folder that the JVM takes for Spark's."""

import os
from pathlib import Path

import pytest

from bmq.broker.ivy import pyspark_jars
from bmq.job.spark_home import spark_home, spark_home_set


@pytest.fixture(autouse=True)
def no_home_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_HOME", raising=False)


def test_the_home_has_sparks_scripts_and_jars_and_no_zip_of_python_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BMQ_CACHE_DIR", str(tmp_path))
    home = spark_home()

    assert (home / "bin" / "spark-submit").is_file()
    assert {jar.name for jar in (home / "jars").iterdir()} == {jar.name for jar in pyspark_jars().iterdir()}
    assert not (home / "python").exists()
    assert spark_home() == home
    with spark_home_set():
        assert os.environ["SPARK_HOME"] == str(home)
    assert "SPARK_HOME" not in os.environ


def test_the_users_spark_home_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    assert spark_home() == tmp_path
    with spark_home_set():
        pass
    assert os.environ["SPARK_HOME"] == str(tmp_path)


def test_a_cache_that_cannot_be_written_costs_time_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    file.touch()
    monkeypatch.setenv("BMQ_CACHE_DIR", str(file))
    assert spark_home() == pyspark_jars().parent.resolve()
