"""The content of a checkpoint as files that other programs read.

    FOLDER/queries.jsonl            a line for each registered query: id, version, kind, feeds, enabled
    FOLDER/streams-<feed>.parquet   a row for each known stream: stream_id, event_time, dimensions, attributes

An attribute is a text: a string as it is, a number or a truth value as JSON writes it. It is missing if the record had
none, or null, a list or an object.

The definitions of the queries are in the control topic (`bmq query export`); the state has what was made of them.
"""

import json
import shutil
from contextlib import ExitStack
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from bmq.job.stored_state import StoredCheckpoint, feeds_of
from bmq.records import Feed, Put, Query, StreamRows
from bmq.records.attribute_texts import NULL, OTHER, SEPARATOR
from bmq.wire.outgoing import text_column

QUERIES = "queries.jsonl"


def write_content(spark: SparkSession, checkpoint: StoredCheckpoint, folder: Path) -> list[str]:
    """Write the files into a folder that is not there; return a line for each. A failure removes the folder."""
    folder.mkdir(parents=True)
    try:
        return _write(spark, checkpoint, folder)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _write(spark: SparkSession, checkpoint: StoredCheckpoint, folder: Path) -> list[str]:
    feeds = feeds_of(checkpoint.origin)
    n_streams = dict.fromkeys(feeds, 0)
    n_queries = 0
    with ExitStack() as stack:
        writers = {
            name: stack.enter_context(pq.ParquetWriter(folder / _file_of(name), _schema(feed)))
            for name, feed in feeds.items()
        }
        queries = stack.enter_context((folder / QUERIES).open("wb"))
        for shard, (_, monitor) in enumerate(checkpoint.shards(spark)):
            for page in monitor.snapshot():
                for name, rows in page.streams.items():
                    writers[name].write_table(_table(feeds[name], rows))
                    n_streams[name] += len(rows.ids)
                if shard == 0:  # every shard has all queries
                    queries.writelines(_line(command.query) for command in page.commands if isinstance(command, Put))
                    n_queries += len(page.commands)
    of_feeds = [f"{n} streams of feed {name} in {folder / _file_of(name)}" for name, n in n_streams.items()]
    return [f"{n_queries} queries in {folder / QUERIES}", *of_feeds]


def _file_of(feed: str) -> str:
    return f"streams-{feed}.parquet"


def _line(query: Query) -> bytes:
    return (
        msgspec.json.encode(
            {
                "query_id": query.query_id,
                "query_version": query.version,
                "kind": query.kind,
                "feeds": query.feeds,
                "enabled": query.enabled,
            }
        )
        + b"\n"
    )


def _schema(feed: Feed) -> pa.Schema:
    columns = [("stream_id", pa.string()), ("event_time", pa.timestamp("ms", "UTC"))]
    columns += [(name, pa.float64()) for name in feed.dimensions]
    return pa.schema([*columns, *((name, pa.string()) for name in feed.attributes)])


def _table(feed: Feed, rows: StreamRows) -> pa.Table:
    ids = text_column(rows.ids.starts, rows.ids.bytes)
    columns = [ids, pa.array(rows.event_times, pa.timestamp("ms", "UTC")), *map(pa.array, rows.values)]
    if rows.attributes is not None:
        of_texts = [map(_plain, text.split(SEPARATOR)) for text in rows.attributes.texts]
        codes = pa.array(rows.attributes.codes)
        columns += [pa.array(texts, pa.string()).take(codes) for texts in zip(*of_texts, strict=True)]
    return pa.Table.from_arrays(columns, schema=_schema(feed))


def _plain(text: str) -> str | None:
    """Return an attribute without the quotes of JSON."""
    if text in (NULL, OTHER):
        return None
    return str(json.loads(text)) if text.startswith('"') else text
