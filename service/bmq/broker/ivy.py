"""Runs the Apache Ivy that PySpark ships. Knows Ivy's files and terms; `jars` is the cache around it."""

import importlib.metadata
import importlib.util
import os
import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import quoteattr

from bmq.broker.java import find_java
from bmq.errors import SetupError

# The broker's 46 jars, 45 MB, took 34 s. If it is slower than 50 kB/s, a person should look before it continues.
DOWNLOAD_LIMIT_SECONDS = 900

USABLE_PYSPARK = "4.2.1"  # the version that pyproject.toml pins
LEAKING_PYSPARK = ("4.2.0",)
_INSTALL = f"pip install pyspark=={USABLE_PYSPARK}"

_OUT_OF_REACH = re.compile(
    r"(?:Host \S+ not found|Server access error|(?:CLIENT|SERVER) ERROR|SocketTimeoutException).*"
)
_UNKNOWN = re.compile(r":: (\S+)#(\S+);(\S+): not found")

# A lookup of sources and javadoc of each module would take as long as everything else.
_SETTINGS = """<ivysettings>
  <property name="ivy.maven.lookup.sources" value="false"/>
  <property name="ivy.maven.lookup.javadoc" value="false"/>
  <settings defaultResolver="maven"/>
  <timeout-constraints>
    <timeout-constraint name="bounded" connectionTimeout="10000" readTimeout="60000"/>
  </timeout-constraints>
  <resolvers><ibiblio name="maven" m2compatible="true" timeoutConstraint="bounded"{root}/></resolvers>
</ivysettings>
"""

_MODULE = """<ivy-module version="2.0">
  <info organisation="bmq" module="jars"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>{lines}</dependencies>
</ivy-module>
"""


@dataclass(frozen=True, slots=True)
class Request:
    """The jars to resolve.

    Attributes
    ----------
    coordinates : "group:artifact:version", each.
    transitive : whether to include the run-time dependencies.
    exclude : artifact names, of any group, to leave out together with everything that only they need.
    """

    coordinates: tuple[str, ...]
    transitive: bool
    exclude: tuple[str, ...]


def fetch(request: Request, folder: Path) -> list[Path]:
    """Return the jars of ``request``, in class path order; download missing ones into ``folder``.

    Ivy does not lock its folder, so the caller must.

    Raises
    ------
    SetupError
        No usable Java, the repository is not reachable, or it lacks one of the coordinates.
    """
    names = ", ".join(request.coordinates)
    with tempfile.TemporaryDirectory(prefix="bmq-ivy-") as scratch:
        settings, module, found = (Path(scratch) / name for name in ("settings.xml", "ivy.xml", "found.txt"))
        settings.write_text(_settings())
        module.write_text(_module(request))
        ivy: list[str | Path] = [find_java(), "-cp", _ivy_jar(), "org.apache.ivy.Main"]
        inputs: list[str | Path] = ["-settings", settings, "-ivy", module]
        outputs: list[str | Path] = ["-cache", folder, "-cachepath", found]
        try:
            run = subprocess.run(
                [*ivy, *inputs, *outputs],
                cwd=scratch,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=DOWNLOAD_LIMIT_SECONDS,
            )
        except subprocess.TimeoutExpired as error:
            raise SetupError(
                f"{names} could not be downloaded within {DOWNLOAD_LIMIT_SECONDS} s. "
                "Start again on a faster connection; what has arrived is kept."
            ) from error
        if run.returncode != 0 or not found.is_file():
            raise _refusal(names, run.stdout.decode(errors="replace"), folder)
        return [Path(name) for name in found.read_text().strip().split(os.pathsep)]


def pyspark_jars() -> Path:
    """Return PySpark's folder of jars without an import of PySpark, which takes a second."""
    spec = importlib.util.find_spec("pyspark")
    for place in (spec and spec.submodule_search_locations) or []:
        if (Path(place) / "jars").is_dir():
            return Path(place) / "jars"
    raise _no_pyspark()


def require_pyspark(version: str) -> str:
    """Return ``version`` of PySpark if the service can run on it for long.

    Raises
    ------
    SetupError : the version leaks one socket for each shard and batch.
    """
    if version in LEAKING_PYSPARK:
        raise SetupError(
            f"PySpark {version} leaks one socket a shard and batch (SPARK-58932): after some hours the service has no "
            f"file descriptors left and stands still. Install {USABLE_PYSPARK}: {_INSTALL}"
        )
    return version


def pyspark_version() -> str:
    """Return the version of the installed PySpark without an import of PySpark, which takes a second.

    Raises
    ------
    SetupError : PySpark is not installed.
    """
    try:
        return importlib.metadata.version("pyspark")
    except importlib.metadata.PackageNotFoundError as error:
        raise _no_pyspark() from error


def _no_pyspark() -> SetupError:
    return SetupError(f"PySpark with its jars is not installed (pyspark-client has none): {_INSTALL}")


def _ivy_jar() -> Path:
    folder = pyspark_jars()
    jar = next(folder.glob("ivy-*.jar"), None)
    if jar is None:
        raise SetupError(f"{folder} lacks PySpark's ivy-*.jar: {_INSTALL} --force-reinstall")
    return jar


def _settings() -> str:
    """Return the text of Ivy's settings file; without a root, Ivy uses Maven Central."""
    root = os.environ.get("BMQ_MAVEN_REPOSITORY")
    return _SETTINGS.format(root=f" root={quoteattr(root.rstrip('/') + '/')}" if root else "")


def _module(request: Request) -> str:
    """Return the text of Ivy's module file. For Maven, Ivy calls the jar `master` and its dependencies `runtime`."""
    conf = quoteattr("default->master,runtime" if request.transitive else "default->master")
    lines = []
    for coordinate in request.coordinates:
        group, name, version = map(quoteattr, coordinate.split(":"))
        lines.append(f"<dependency org={group} name={name} rev={version} conf={conf}/>")
    lines += [f"<exclude module={quoteattr(name)}/>" for name in request.exclude]
    return _MODULE.format(lines="\n".join(lines))


def _refusal(names: str, output: str, folder: Path) -> SetupError:
    """Return the error with the reason why Ivy failed.

    Ivy reports a module as "not found" even if the network is down, so signs of a network failure are checked first.
    """
    repository = os.environ.get("BMQ_MAVEN_REPOSITORY") or "Maven Central"
    out_of_reach = _OUT_OF_REACH.search(output)
    if out_of_reach:
        return SetupError(
            f"{names} could not be downloaded from {repository} ({out_of_reach[0].strip()}). Connect once, "
            f"or name a mirror in BMQ_MAVEN_REPOSITORY, or copy {folder.parent} from a machine that has them."
        )
    unknown = [":".join(module) for module in dict.fromkeys(_UNKNOWN.findall(output))]
    if unknown:
        return SetupError(f"{repository} lacks {', '.join(unknown)}. Check the names and versions.")
    return SetupError(f"{names} could not be resolved from {repository}. Ivy's last words:\n{output[-2000:]}")
