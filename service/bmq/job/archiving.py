"""Writes the archive of the JVM's classes (`job.class_archive`), once for each Java and each version of the jars.

    python -m bmq.job.archiving

It starts Spark, rehearses some batches as the service does before it runs, and lets the JVM write what it loaded.
`python -m bmq.job.warmup` runs it in a process of its own, because a process has one JVM. Nothing needs the archive, so
neither the warm-up nor make ends if it fails.
"""

import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from subprocess import Popen, TimeoutExpired

from pyspark import SparkContext

from bmq.errors import ServiceError, SetupError
from bmq.job.class_archive import QUIET, class_archive
from bmq.job.failed_query import explained
from bmq.job.plan import Plan
from bmq.job.rehearsal import rehearse
from bmq.job.session import java_options, make_session
from bmq.job.shards import shard_keys
from bmq.records import Feed, Installation

WRITE_LIMIT_SECONDS = 300.0  # 10 s on a quiet machine


def main() -> None:
    """Write the archive unless it is there."""
    archive = class_archive()
    if archive.is_file():
        print(f"The classes of Spark's JVM are archived already: {archive}")
        return
    begin = time.monotonic()
    _write(archive)
    megabytes = archive.stat().st_size / 1e6
    print(f"Archived the classes of Spark's JVM, {megabytes:.0f} MB, in {time.monotonic() - begin:.0f} s: {archive}")


def _write(archive: Path) -> None:
    """Write the archive beside its place, and move it there when the JVM has ended.

    Raises
    ------
    SetupError : the JVM did not write it, or the folder cannot be written.
    JobFailed : a batch of the rehearsal failed.
    """
    half = archive.with_suffix(f".{os.getpid()}")
    options = f'{java_options()} "-XX:ArchiveClassesAtExit={half}" {QUIET}'
    try:
        archive.parent.mkdir(parents=True, exist_ok=True)
        session = make_session(2, {"spark.driver.extraJavaOptions": options})
        with explained(kept=""):
            rehearse(session, _plan())
        session.stop()
        jvm: Popen[bytes] = SparkContext._gateway.proc  # type: ignore[union-attr]  # noqa: SLF001 - PySpark has no other way
        assert jvm.stdin is not None
        jvm.stdin.close()  # ends it, and it writes the archive
        with suppress(TimeoutExpired):
            jvm.wait(WRITE_LIMIT_SECONDS)
        if jvm.returncode != 0 or not half.is_file():
            raise SetupError(f"Java ended with {jvm.returncode} in place of writing {half}.")
        half.replace(archive)
    except OSError as error:
        raise SetupError(f"{archive} cannot be written ({error}).") from error
    finally:
        half.unlink(missing_ok=True)


def _plan() -> Plan:
    """Return a plan of one feed, with the default options."""
    feed = Feed("feed", "feed", "id", ("x", "y"), event_time="ts")
    return Plan(
        run_id="",
        installation=Installation({feed.name: feed}),
        shard_keys=shard_keys(2),
        start_offsets={},
        silent_tombstones_before=0,
        replies_topic="replies",
        events_topic="events",
        dead_letter_topic="dead-letters",
        clock_topic=None,
        membership_topic=None,
        events_key="stream_id",
        events_layout="crossing",
        client_options={},
        delivery_id="",
        markers_topic=None,
    )


if __name__ == "__main__":
    try:
        main()
    except ServiceError as error:
        sys.exit(f"No archive of the JVM's classes, so each start takes some ten seconds more: {error}")
