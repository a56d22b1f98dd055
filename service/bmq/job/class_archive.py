"""Where the classes of Spark's JVM are archived on this machine. `job.archiving` writes the archive.

    <cache>/archives/<key>.jsa     the key is a digest of SPARK_HOME, and of name, size, time of Java and each jar

Until its first batch has run, Spark loads some fifteen thousand classes. To read and check them is half of the
processor time of a start. HotSpot can write them into an archive (application class-data sharing), and a JVM with the
same Java, jars and collector of garbage maps the archive in place of that. A JVM for which the archive does not fit
reads its classes as ever. So an archive is never wrong, only missing. Times are whole seconds: an image that was pushed
and pulled has no more. Knows files, but neither Spark nor a JVM.
"""

import hashlib
from pathlib import Path

from bmq.broker.ivy import pyspark_jars
from bmq.broker.jars import spark_jars
from bmq.broker.java import find_java
from bmq.folders import cache_folder
from bmq.job.spark_home import spark_home

# Without them, a JVM prints lines of warning for an archive that does not fit, and when it writes one.
QUIET = "-Xlog:cds=off -Xlog:cds+dynamic=off -Xlog:class+path=off"


def class_archive() -> Path:
    """Return where the archive for this Java and these jars is, or would be. Costs a `stat` for each jar: 5 ms.

    Raises
    ------
    SetupError : no usable Java, or the jars are not available.
    """
    files = [find_java().resolve(), *sorted(pyspark_jars().glob("*.jar")), *spark_jars()]
    found = [f"{file} {(status := file.stat()).st_size} {int(status.st_mtime)}" for file in files]
    key = hashlib.sha256("\n".join([str(spark_home()), *found]).encode()).hexdigest()[:16]
    return cache_folder() / "archives" / f"{key}.jsa"


def archive_options() -> str:
    """Return the options with which a JVM maps the archive, or an empty text without an archive."""
    archive = class_archive()
    return f'{QUIET} "-XX:SharedArchiveFile={archive}"' if archive.is_file() else ""
