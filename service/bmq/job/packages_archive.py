"""An archive of the Python packages of an executor.

    bmq-packages.tar.gz
      bmq/ numpy/ numba/ …     as in site-packages; what bmq[service] needs, and what that needs

PySpark and py4j are left out: Spark brings its own to each executor. Python must have the same version everywhere, and
the machines the same kind of CPU and libc, because packages have compiled code. The interpreter is not in it.
"""

from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import bmq
from bmq.errors import SetupError
from bmq.job.kernel_archive import write

OF_SPARK = {"pyspark", "py4j"}
EXTRA = "service"


def write_packages(path: Path) -> int:
    """Write the archive, and return its bytes. Takes a minute, most of it to compress some 600 MB.

    Raises
    ------
    SetupError : a package is not installed or has no list of its files, or the archive cannot be written.
    """
    files = {name: file for one in _needed() for name, file in _files_of(one)}
    package = Path(bmq.__file__).parent
    files |= {Path("bmq") / file.relative_to(package): file for file in package.rglob("*") if file.is_file()}
    return write(((file, name) for name, file in sorted(files.items())), path)


def _needed() -> list[Distribution]:
    """Return bmq and all distributions that it needs with its extra, without those of Spark."""
    found: dict[str, Distribution] = {}
    asked: set[tuple[str, str]] = set()
    waiting = [("bmq", EXTRA), ("bmq", "")]
    while waiting:
        name, extra = waiting.pop()
        if (name, extra) in asked or name in OF_SPARK:
            continue
        asked.add((name, extra))
        try:
            found[name] = found.get(name) or distribution(name)
        except PackageNotFoundError as error:
            raise SetupError(
                f"The package {name} is not installed, and bmq[{EXTRA}] needs it. Run pip install 'bmq[{EXTRA}]'."
            ) from error
        for line in found[name].requires or ():
            requirement = Requirement(line)
            if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
                waiting += [(canonicalize_name(requirement.name), other) for other in ("", *requirement.extras)]
    return list(found.values())


def _files_of(one: Distribution) -> Iterator[tuple[Path, Path]]:
    """Yield the files of a distribution in site-packages: name there, and place."""
    if one.files is None:
        raise SetupError(
            f"The package {one.name} has no list of its files. Install it with pip in a virtual environment."
        )
    for file in one.files:
        place = Path(str(one.locate_file(file)))
        is_of_this_machine = file.suffix == ".pth" or file.name == "direct_url.json"
        if ".." not in file.parts and not is_of_this_machine and place.is_file():  # ..: a command
            yield Path(*file.parts), place
