"""Events to a Parquet or CSV file, in the columns of the library (docs/library.md).

The file appears under its name when it is whole. Until then it has another name with the suffix .part.
"""

from collections.abc import Collection, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv

from bmq.errors import ServiceError
from bmq.library.event_tables import EventTables
from bmq.library.local_shard import Events
from bmq.records import Feed

GROUP_ROWS = 250_000  # rows that are kept until they become a row group of Parquet: some 50 MB


class EventFile:
    """A file of events; a `pieces.Sink`.

    Parameters
    ----------
    path : its suffix is .parquet or .csv.
    feeds : of the replay; they decide on the columns.
    inputs : the files of readings, which the file must not replace.
    overwrite : whether another file of this name is replaced.

    Raises
    ------
    ServiceError
        The file is there, is a folder or one of the inputs, has another suffix, or cannot be written.
    """

    def __init__(
        self, path: Path, feeds: Mapping[str, Feed], inputs: Collection[Path] = (), *, overwrite: bool
    ) -> None:
        suffix = path.suffix.lower()
        if suffix not in (".parquet", ".csv"):
            raise ServiceError(f"--out is {str(path)!r}, which ends with neither .parquet nor .csv. End it with one.")
        if path.resolve() in {file.resolve() for file in inputs}:
            raise ServiceError(f"--out is {str(path)!r}, which is also a file of readings. Give another name.")
        if path.is_dir():
            raise ServiceError(f"--out is {str(path)!r}, which is a folder. Give the name of a file.")
        if path.exists() and not overwrite:
            raise ServiceError(f"File {str(path)!r} is there already. Give another name, or --overwrite.")
        self._path, self._part = path, path.with_name(f"{path.name}.{uuid4().hex[:8]}.part")  # no file of the user
        self._tables = EventTables(feeds)
        self._kept: list[pa.Table] = []
        self._n_kept = 0
        # Arrow writes without Python's lock, so the engine works on meanwhile. One group waits at most.
        self._thread = ThreadPoolExecutor(1)
        self._writing: Future[None] | None = None
        schema = self._tables.schema
        # No two events have the same id, so a dictionary of ids would only cost time.
        repeated = [name for name in schema.names if name != "event_id"]
        try:
            self._writer = (
                csv.CSVWriter(self._part, schema)
                if suffix == ".csv"
                else pq.ParquetWriter(self._part, schema, compression="zstd", use_dictionary=repeated)
            )
        except OSError as error:
            raise ServiceError(f"File {str(path)!r} cannot be written: {error}. Give another name.") from None

    def write(self, events: Events) -> None:
        """Append the events.

        Raises
        ------
        ServiceError
            The file cannot be written, for example because the disk is full.
        """
        table = self._tables.table(events)
        self._kept.append(table)
        self._n_kept += table.num_rows
        if self._n_kept >= GROUP_ROWS:
            self._flush()

    def finish(self) -> None:
        """Close the file, and give it its name.

        Raises
        ------
        ServiceError
            As for `write`.
        """
        self._flush()
        self._wait()
        self._thread.shutdown()
        try:
            self._writer.close()
            self._part.replace(self._path)
        except OSError as error:
            raise self._unwritable(error) from None

    def abandon(self) -> None:
        """Delete what was written."""
        self._thread.shutdown(cancel_futures=True)
        with suppress(OSError):  # a full disk, again
            self._writer.close()
        self._part.unlink(missing_ok=True)

    def _flush(self) -> None:
        kept, self._kept, self._n_kept = self._kept, [], 0
        self._wait()
        self._writing = self._thread.submit(self._write_group, kept)

    def _write_group(self, tables: list[pa.Table]) -> None:
        table = pa.concat_tables([self._tables.schema.empty_table(), *tables])
        self._writer.write_table(table.combine_chunks())

    def _wait(self) -> None:
        if self._writing is None:
            return
        try:
            self._writing.result()
        except OSError as error:
            raise self._unwritable(error) from None

    def _unwritable(self, error: OSError) -> ServiceError:
        return ServiceError(f"File {str(self._path)!r} cannot be written: {error}. Make room for it.")
