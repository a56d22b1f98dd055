"""Jars come from a small Maven repository in a folder, through the real Ivy and without a network."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from bmq.broker.ivy import USABLE_PYSPARK, pyspark_jars, pyspark_version, require_pyspark
from bmq.broker.jars import CHECKSUMS, broker_jars, read_checksums, resolve, spark_jars
from bmq.errors import SetupError
from bmq.folders import cache_folder

pytestmark = pytest.mark.unit


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and a repository where `app` needs `middle`, which needs `scala-library`."""
    repository = tmp_path / "repository"
    publish(repository, "app", needs=["middle"])
    publish(repository, "middle", needs=["scala-library"])
    publish(repository, "scala-library")
    monkeypatch.setenv("BMQ_MAVEN_REPOSITORY", repository.as_uri())
    monkeypatch.setenv("BMQ_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def publish(repository: Path, name: str, needs: list[str] | None = None) -> None:
    """Put ``name``, version 1.0 of the group org.example, into ``repository``."""
    folder = repository / "org" / "example" / name / "1.0"
    folder.mkdir(parents=True)
    dependencies = "".join(
        f"<dependency><groupId>org.example</groupId><artifactId>{need}</artifactId><version>1.0</version></dependency>"
        for need in needs or []
    )
    (folder / f"{name}-1.0.pom").write_text(
        "<project><modelVersion>4.0.0</modelVersion><groupId>org.example</groupId>"
        f"<artifactId>{name}</artifactId><version>1.0</version><dependencies>{dependencies}</dependencies></project>"
    )
    with zipfile.ZipFile(folder / f"{name}-1.0.jar", "w") as jar:
        jar.writestr("name", name)


def names(jars: list[Path]) -> list[str]:
    return [jar.name for jar in jars]


def forbid_java(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/there/is/no/java")


def test_a_jar_comes_with_what_it_needs() -> None:
    jars = resolve(["org.example:app:1.0"])

    assert names(jars) == ["app-1.0.jar", "middle-1.0.jar", "scala-library-1.0.jar"]
    assert all(zipfile.is_zipfile(jar) for jar in jars)


def test_what_it_needs_can_be_left_out() -> None:
    assert names(resolve(["org.example:app:1.0"], transitive=False)) == ["app-1.0.jar"]


def test_an_excluded_artifact_is_neither_returned_nor_downloaded(cache: Path) -> None:
    jars = resolve(["org.example:app:1.0"], exclude=["scala-library"])

    assert names(jars) == ["app-1.0.jar", "middle-1.0.jar"]
    assert not list(cache.rglob("scala-library*.jar"))


def test_the_second_call_starts_no_java_and_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    first = resolve(["org.example:app:1.0"], progress=said.append)
    assert [line.split()[0] for line in said] == ["Downloading", "Downloaded"]

    forbid_java(monkeypatch)

    assert resolve(["org.example:app:1.0"], progress=said.append) == first
    assert len(said) == 2


def test_a_copied_cache_serves_a_machine_without_network(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolve(["org.example:app:1.0"])
    copy = cache.rename(tmp_path / "copy")
    monkeypatch.setenv("BMQ_CACHE_DIR", str(copy))
    forbid_java(monkeypatch)

    jars = resolve(["org.example:app:1.0"])

    assert len(jars) == 3
    assert all(jar.is_relative_to(copy) for jar in jars)


@pytest.mark.parametrize("damage", ["half an answer", "a jar is gone"])
def test_a_damaged_cache_is_filled_again(cache: Path, damage: str) -> None:
    jars = resolve(["org.example:app:1.0"])
    if damage == "a jar is gone":
        jars[1].unlink()
    else:
        (answer,) = cache.glob("jars/*.json")
        answer.write_text(answer.read_text()[:20])

    again = resolve(["org.example:app:1.0"])

    assert again == jars
    assert all(zipfile.is_zipfile(jar) for jar in again)


def test_processes_that_start_together_download_once_and_agree() -> None:
    code = (
        "import json; from bmq.broker.jars import resolve; said = [];"
        "jars = resolve(['org.example:app:1.0'], progress=said.append);"
        "print(json.dumps([len(said), [str(jar) for jar in jars]]))"
    )
    places = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", code]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, env=places) for _ in range(2)]
    answers = [json.loads(process.communicate(timeout=60)[0]) for process in both]

    assert sorted(said for said, _ in answers) == [0, 2]
    assert answers[0][1] == answers[1][1]
    assert len(answers[0][1]) == 3


def test_a_jar_must_be_the_pinned_one(cache: Path, tmp_path: Path) -> None:
    pinned = tmp_path / "jars.sha256"
    jars = resolve(["org.example:app:1.0"], exclude=["scala-library"])
    checksums = {jar.name: hashlib.sha256(jar.read_bytes()).hexdigest() for jar in jars}
    shutil.rmtree(cache)

    def resolve_pinned(**others: str) -> list[Path]:
        pinned.write_text("".join(f"{checksum}  {name}\n" for name, checksum in (checksums | others).items()))
        return resolve(["org.example:app:1.0"], pinned=pinned)

    with pytest.raises(SetupError, match=r"scala-library-1.0.jar is not the file .* expected none, for no jar of this"):
        resolve_pinned()
    with pytest.raises(SetupError, match=r"scala-library-1.0.jar is not the file .* expected 0000\. .*_REPOSITORY"):
        resolve_pinned(**{"scala-library-1.0.jar": "0000"})
    checksums["scala-library-1.0.jar"] = hashlib.sha256(next(cache.rglob("scala-*.jar")).read_bytes()).hexdigest()
    assert len(resolve_pinned()) == 3


def test_each_jar_of_the_service_is_pinned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BMQ_CACHE_DIR")
    monkeypatch.delenv("BMQ_MAVEN_REPOSITORY")
    jars = [*spark_jars(), *broker_jars()]

    assert {jar.name: hashlib.sha256(jar.read_bytes()).hexdigest() for jar in jars} == read_checksums(CHECKSUMS)


def test_without_a_network_the_error_names_three_ways_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BMQ_MAVEN_REPOSITORY", "http://127.0.0.1:9/maven")

    with pytest.raises(SetupError, match=r"could not be downloaded .* Connect once, or name a mirror .* or copy"):
        resolve(["org.example:app:1.0"])


def test_an_unknown_version_is_named() -> None:
    with pytest.raises(SetupError, match=r"lacks org.example:app:7.0\. Check the names and versions"):
        resolve(["org.example:app:7.0"])


def test_a_cache_folder_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("BMQ_CACHE_DIR", str(tmp_path / "file" / "cache"))

    with pytest.raises(SetupError, match=r"cache folder .*file/cache cannot be used .* BMQ_CACHE_DIR"):
        resolve(["org.example:app:1.0"])


def test_the_cache_is_in_the_users_cache_folder_unless_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BMQ_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    assert cache_folder() == Path("/caches/bmq")

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/someone")
    assert cache_folder() == Path("/home/someone/.cache/bmq")


def test_pyspark_ships_the_ivy_that_resolves() -> None:
    assert list(pyspark_jars().glob("ivy-*.jar"))


def test_a_pyspark_that_leaks_sockets_is_refused_with_the_way_out() -> None:
    with pytest.raises(SetupError, match=r"4\.2\.0 leaks one socket .* pip install pyspark==4\.2\.1"):
        require_pyspark("4.2.0")


def test_the_pyspark_that_is_installed_is_the_one_that_errors_name() -> None:
    assert require_pyspark(pyspark_version()) == USABLE_PYSPARK
