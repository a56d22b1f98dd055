"""Readings in Parquet and CSV files, in the order of the files and of their rows.

    files ─► tables, read ahead ─► TableReader of the library ─► pieces

Knows the two formats. `library.reading_tables` knows what a row means.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from bmq.backtest.csv_tables import CSV_SUFFIXES, open_csv
from bmq.backtest.pieces import BATCH_ROWS, HOW_TO_DROP, Piece, read_ahead
from bmq.errors import ConfigError, ReadingError, ServiceError
from bmq.library.reading_tables import BadReadings, TableReader
from bmq.records import Feed, Format
from bmq.wire.fault_texts import suggestion
from bmq.wire.feed_fields import KEY

PARQUET_SUFFIXES = (".parquet", ".pq")
BAD_ROWS = "rows of files"


@dataclass(frozen=True, slots=True)
class Columns:
    """Where the columns of a feed are, if not under the names of the configuration; None: there."""

    stream_id: str | None = None
    event_time: str | None = None


def feed_of_tables(feed: Feed, columns: Columns) -> Feed:
    """Return the feed with the columns that its tables have. All its other rules stay, but it takes part in no join.

    Raises
    ------
    ConfigError
        The id or the time of a reading is in the Kafka record, and no column is named instead.
    """
    stream_id = columns.stream_id or feed.stream_id
    event_time = columns.event_time or feed.event_time
    if stream_id == KEY:
        raise ConfigError(
            f"Feed {feed.name!r} has the stream id in the record key, but a row of a file has no key. Name the column "
            "with --stream-id."
        )
    if event_time is None:
        raise ConfigError(
            f"Feed {feed.name!r} takes the event time from the record's timestamp, but a row of a file has none. Name "
            "the column with --event-time."
        )
    names = [stream_id, event_time, *feed.dimensions, *feed.attributes]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ConfigError(
            f"Column {twice[0]!r} has two roles in feed {feed.name!r}. Name another with --stream-id or --event-time."
        )
    return replace(feed, stream_id=stream_id, event_time=event_time, join=False)


class ReadingFiles:
    """Files of readings of one feed; a `Source`.

    Parameters
    ----------
    paths : files, and folders with such files, which are read in the order of their names.
    feed : as `feed_of_tables` returns it.
    bad_readings : whether a row that is not a reading is an error, or is dropped and counted.
    texts : attributes of CSV files that are texts, also if their cells read as numbers.
    batch_rows : the most rows of a piece.
    row_group : of Parquet files, only this one; None: all.

    Raises
    ------
    ServiceError
        There is no such file, or it is neither Parquet nor CSV.
    ConfigError
        One of ``texts`` is not an attribute of the feed, or the service would read numbers in it.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        feed: Feed,
        bad_readings: BadReadings = "refuse",
        texts: Sequence[str] = (),
        batch_rows: int = BATCH_ROWS,
        row_group: int | None = None,
    ) -> None:
        self._feed = feed
        self._bad_readings = bad_readings
        for name in texts:
            if name not in feed.attributes:
                raise ConfigError(
                    f"--text is {name!r}, but feed {feed.name!r} has no such attribute. "
                    f"{suggestion(name, feed.attributes)}"
                )
        if texts and feed.format is Format.CSV:
            raise ConfigError(
                f'--text is {texts[0]!r}, but feed {feed.name!r} has format = "csv": the service takes a cell that '
                "reads as a number for a number, so the events would be others. Leave --text out."
            )
        # In a Parquet file, too, a text is what the service would get as a cell.
        cells = feed.attributes if feed.format is Format.CSV else ()
        self._of_parquet = TableReader(feed, bad_readings, HOW_TO_DROP, cells)
        self._of_csv = TableReader(feed, bad_readings, HOW_TO_DROP, set(feed.attributes) - set(texts))
        self._batch_rows = batch_rows
        self._row_group = row_group
        self._files = [file for path in paths for file in files_of(path)]
        self._sizes = [file.stat().st_size for file in self._files]

    @property
    def files(self) -> list[Path]:
        """The files, in the order in which they are read."""
        return self._files

    @property
    def total(self) -> int:
        """Bytes of all files."""
        return sum(self._sizes)

    def pieces(self) -> Iterator[Piece]:
        """Yield the rows of the files.

        Raises
        ------
        ReadingError
            A column is not what the feed declares, or a row is not a reading and these are refused.
        ServiceError
            A file is damaged.
        """
        before = 0
        for file, size in zip(self._files, self._sizes, strict=True):
            reader, row = self._of_csv if is_csv(file) else self._of_parquet, self._first_row(file)
            for table, share in read_ahead(self._tables(file)):
                with _named(file):
                    readings, n_bad = reader.read(table, row)
                row += table.num_rows
                yield Piece(readings, before + round(share * size), Counter({BAD_ROWS: n_bad} if n_bad else {}))
            before += size

    def _tables(self, file: Path) -> Iterator[tuple[pa.Table, float]]:
        """Yield tables, each with the share of the file that is read with it."""
        try:
            if is_csv(file):
                with _named(file):
                    yield from open_csv(file, self._feed, self._bad_readings, self._batch_rows)
            else:
                yield from self._parquet(file)
        except (pa.ArrowException, OSError) as error:
            raise ServiceError(
                f"File {str(file)!r} cannot be read: {error}. Check that it is whole, and that each line "
                "of CSV has the cells of the header."
            ) from None

    def _parquet(self, file: Path) -> Iterator[tuple[pa.Table, float]]:
        feed = self._feed
        assert feed.event_time is not None
        names = [feed.stream_id, feed.event_time, *feed.dimensions, *feed.attributes]
        with pq.ParquetFile(file, pre_buffer=True) as parquet:
            schema, n_rows = parquet.schema_arrow, parquet.metadata.num_rows
            if not set(names) <= set(schema.names):
                with _named(file):
                    self._of_parquet.read(schema.empty_table())  # raises, with what is missing and what there is
            n_read = 0
            groups = range(parquet.num_row_groups) if self._row_group is None else [self._row_group]
            for batch in parquet.iter_batches(self._batch_rows, groups, names):
                n_read += batch.num_rows
                yield pa.Table.from_batches([batch]), n_read / n_rows

    def _first_row(self, file: Path) -> int:
        """Return the number of the first row that is read."""
        if not self._row_group:
            return 0
        metadata = pq.read_metadata(file)
        return sum(metadata.row_group(number).num_rows for number in range(self._row_group))


def files_of(path: Path) -> list[Path]:
    """Return the file, or the files of readings below a folder, by name.

    Raises
    ------
    ServiceError
        There is no such path, or it has no Parquet or CSV.
    """
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if file.is_file() and (is_csv(file) or _is_parquet(file)))
        if not files:
            raise ServiceError(f"Folder {str(path)!r} has no Parquet or CSV files. Give the path of one that has.")
        return files
    if not path.is_file():
        raise ServiceError(f"There is no file or folder {str(path)!r}. Give the path of one.")
    if not (is_csv(path) or _is_parquet(path)):
        suffixes = ", ".join((*PARQUET_SUFFIXES, *CSV_SUFFIXES))
        raise ServiceError(f"The name of file {str(path)!r} ends with none of {suffixes}. Rename it, or convert it.")
    return [path]


def is_csv(path: Path) -> bool:
    """Return whether the name of a file is one of CSV."""
    return path.name.lower().endswith(CSV_SUFFIXES)


def _is_parquet(path: Path) -> bool:
    return path.name.lower().endswith(PARQUET_SUFFIXES)


@contextmanager
def _named(file: Path) -> Iterator[None]:
    try:
        yield
    except ReadingError as error:
        raise ReadingError(error.code, f"File {str(file)!r}: {error}") from None
