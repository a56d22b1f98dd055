"""PySpark's own folder without its zip of Python code, as SPARK_HOME of the JVM that the service starts.

The JVM puts `python/lib/pyspark.zip` in front of the module path of each Python process that it starts. Python keeps no
bytecode of what is in a zip, so each of these processes compiled PySpark anew: 0.7 s of processor time, eight times in
a start, most of them one after the other. Without the zip they import the installed package, which has the same code.
The JVM also searches for data sources of other packages only if it finds the zip, which costs two more processes.
"""

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bmq.broker.ivy import pyspark_jars
from bmq.folders import cache_folder

_VARIABLE = "SPARK_HOME"
_LINKED = ("bin", "conf", "jars")  # what the scripts in `bin` and the JVM read


def spark_home() -> Path:
    """Return the folder, made if missing; the user's SPARK_HOME if it is set; PySpark's own if none can be made.

    It is the same at each start, because an archive of classes (`job.class_archive`) fits only the paths of its jars.

    Raises
    ------
    SetupError : PySpark is not installed.
    """
    named = os.environ.get(_VARIABLE)
    if named:
        return Path(named)
    original = pyspark_jars().parent.resolve()
    folder = cache_folder() / "spark" / hashlib.sha256(os.fsencode(original)).hexdigest()[:16]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in _LINKED:
            _link(folder / name, original / name)
    except OSError:  # a start takes some seconds more
        return original
    return folder


@contextmanager
def spark_home_set() -> Iterator[None]:
    """Set SPARK_HOME for the processes that the block starts."""
    is_users = _VARIABLE in os.environ
    os.environ[_VARIABLE] = str(spark_home())
    try:
        yield
    finally:
        if not is_users:
            del os.environ[_VARIABLE]


def _link(link: Path, target: Path) -> None:
    """Make the link, unless it is there or has no target. Another start may do the same at this moment."""
    if target.exists() and not link.exists():
        try:
            link.symlink_to(target)
        except FileExistsError:
            if not link.exists():
                raise
