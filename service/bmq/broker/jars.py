"""Maven coordinates to jar files on this machine, each downloaded once.

    <cache>/jars/<key>.json     the result of one request: the second call reads only this file
    <cache>/jars/.lock          held while Ivy runs, so that simultaneous callers download once
    <cache>/ivy/                Ivy's own folder, with the jars

PySpark ships Apache Ivy, so a user needs only Java and pip. `jars.sha256` beside this module has the checksum of each
jar of the service: a repository that gives another file under the same name is found out. Knows files, but neither
Spark nor Kafka.
"""

import fcntl
import hashlib
import json
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from bmq.broker.ivy import Request, fetch
from bmq.errors import SetupError
from bmq.folders import cache_folder

# The newest patch release of Kafka 4 (4.4 has only a .0). Runs on Java 17. docker-compose.yml has the same version.
KAFKA_VERSION = "4.3.1"
KAFKA_BROKER = f"org.apache.kafka:kafka_2.13:{KAFKA_VERSION}"

# The broker logs through SLF4J 1.7 and ships no backend. This one needs no configuration file and writes to stderr.
BROKER_LOG = "org.slf4j:slf4j-simple:1.7.36"

CHECKSUMS = Path(__file__).with_name("jars.sha256")

# Avoids the `chmod` processes of Hadoop's local file system for a local checkpoint. PySpark ships its dependencies.
LOCAL_FS = "com.globalmentor:hadoop-bare-naked-local-fs:0.1.0"

Progress = Callable[[str], None]

_log = logging.getLogger(__name__)


def spark_jars(progress: Progress = _log.info) -> list[Path]:
    """Return the jars that Spark needs beside those that PySpark ships: `LOCAL_FS`."""
    return resolve([LOCAL_FS], transitive=False, pinned=CHECKSUMS, progress=progress)


def broker_jars(progress: Progress = _log.info) -> list[Path]:
    """Return the class path of the one-node Kafka."""
    return resolve([KAFKA_BROKER, BROKER_LOG], pinned=CHECKSUMS, progress=progress)


def resolve(
    coordinates: Sequence[str],
    *,
    transitive: bool = True,
    exclude: Sequence[str] = (),
    pinned: Path | None = None,
    progress: Progress = _log.info,
) -> list[Path]:
    """Return the jar files of ``coordinates`` and of their run-time dependencies.

    Parameters
    ----------
    coordinates : "group:artifact:version", each.
    transitive : False: without the dependencies.
    exclude : artifact names, of any group, to leave out together with everything that only they need.
    pinned : a file with the SHA-256 and the name of each jar, as of `sha256sum`; None: any jar will do. Looked at when
        the jars are downloaded.
    progress : called with one line when a download starts, and with one when it ends.

    Raises
    ------
    SetupError
        At the first call only: no usable Java, the repository is not reachable, it lacks one of the coordinates or has
        another file than the pinned one, or the cache folder cannot be written.

    Notes
    -----
    A cached result costs a file read and a stat for each jar. It needs no JVM, no network and no write, so a read-only
    cache in a container image is enough. `BMQ_MAVEN_REPOSITORY` replaces Maven Central.
    """
    request = Request(tuple(coordinates), transitive, tuple(exclude))
    folder = cache_folder()
    key = hashlib.sha256(json.dumps(asdict(request)).encode()).hexdigest()[:16]
    answer = folder / "jars" / f"{key}.json"
    jars = _cached(answer, folder)
    if jars is not None:
        return jars
    try:
        with _lock(answer.with_name(".lock")):
            # Another process may have downloaded them while this one was blocked on the lock.
            return _cached(answer, folder) or _download(request, answer, folder, pinned, progress)
    except OSError as error:
        raise SetupError(
            f"the cache folder {folder} cannot be used ({error}). Make it writable or name another in BMQ_CACHE_DIR."
        ) from error


def _cached(answer: Path, folder: Path) -> list[Path] | None:
    """Return the jars that an earlier call found, or None if there was no such call or a file is gone."""
    try:
        jars = [folder / name for name in json.loads(answer.read_bytes())["jars"]]
        return jars if all(jar.is_file() for jar in jars) else None
    except (OSError, ValueError, KeyError):
        return None


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    """Lock ``path`` against other processes and threads; the system releases the lock when the process ends."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _download(request: Request, answer: Path, folder: Path, pinned: Path | None, progress: Progress) -> list[Path]:
    """Return the jars of ``request`` from the network, and store the result for the next call."""
    progress(f"Downloading {', '.join(request.coordinates)} to {folder}, this first time only ...")
    start = time.monotonic()
    jars = fetch(request, folder / "ivy")
    if pinned is not None:
        _must_be_pinned(jars, pinned)
    megabytes = sum(jar.stat().st_size for jar in jars) / 1e6
    progress(f"Downloaded {len(jars)} jars, {megabytes:.0f} MB, in {time.monotonic() - start:.0f} s.")
    # Relative names, so that the folder can be copied to a machine without a network.
    content = {**asdict(request), "jars": [str(jar.relative_to(folder)) for jar in jars]}
    # Replaced in one step: readers use no lock, so they must never see half of the file.
    half = answer.with_suffix(".tmp")
    half.write_text(json.dumps(content, indent=1))
    half.replace(answer)
    return jars


def read_checksums(pinned: Path) -> dict[str, str]:
    """Return file name -> SHA-256, from a file as `sha256sum` writes it."""
    return {name: checksum for checksum, name in map(str.split, pinned.read_text().splitlines())}


def _must_be_pinned(jars: Sequence[Path], pinned: Path) -> None:
    expected = read_checksums(pinned)
    for jar in jars:
        found = hashlib.sha256(jar.read_bytes()).hexdigest()
        known = expected.get(jar.name, "none, for no jar of this name is known")
        if found != known:
            raise SetupError(
                f"{jar} is not the file that this version was tested with: its SHA-256 is {found}, expected {known}. "
                "Find out where the repository has it from (BMQ_MAVEN_REPOSITORY, or Maven Central), and delete the "
                "file before the next start."
            )
