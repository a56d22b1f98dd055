"""A checkpoint whose files name another folder: what its service changes, and what a reader sees."""

import json
from pathlib import Path

import pytest

from bmq.job.moved_checkpoint import follow_move, readable

METADATA = Path("state/0/_metadata/v2")
SCHEMA = Path("state/0/_stateSchema/default/0_28715a89")


def checkpoint(folder: Path, written_at: str) -> Path:
    """Return a folder with files as Spark 4.2 writes them at an address."""
    for file in (METADATA / "0", SCHEMA, Path("state/0/1/7.changelog"), Path("commits/6"), Path("bmq.json")):
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(file.name)
    stores = [{"storeName": "default", "numPartitions": 2, "stateSchemaFilePaths": [f"{written_at}/{SCHEMA}"]}]
    text = "v2\n" + json.dumps({"stateStoreInfo": stores}, separators=(",", ":"))
    for batch in ("0", "12"):
        (folder / METADATA / batch).write_text(text)
        (folder / METADATA / f".{batch}.crc").write_bytes(b"crc")
    return folder


def schemas(folder: Path) -> set[str]:
    """Return the addresses that the files name."""
    found = [(folder / METADATA / batch).read_text().removeprefix("v2\n") for batch in ("0", "12")]
    return {
        path for text in found for store in json.loads(text)["stateStoreInfo"] for path in store["stateSchemaFilePaths"]
    }


def content(folder: Path) -> dict[Path, bytes]:
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("written_at", ["file:/gone", "file:///gone", "hdfs://node:8020/bmq/c", "s3a://bucket/c"])
@pytest.mark.parametrize("name", ["here", "with a space", "é 100% #1", 'a "quote" \\'])
def test_a_service_lets_the_files_name_the_folder_where_they_are(tmp_path: Path, name: str, written_at: str) -> None:
    folder = checkpoint(tmp_path / name, written_at)

    assert follow_move(folder)
    (address,) = schemas(folder)
    assert Path(address.removeprefix("file:")).read_text() == SCHEMA.name
    # A checksum of the old content would make Hadoop refuse the file.
    assert sorted(path.name for path in (folder / METADATA).iterdir()) == ["0", "12"]
    assert not follow_move(folder)


@pytest.mark.parametrize("scheme", ["file:", "file://"])
def test_a_checkpoint_that_is_where_it_was_made_stays_as_it_is(tmp_path: Path, scheme: str) -> None:
    folder = checkpoint(tmp_path, f"{scheme}{tmp_path}")
    before = content(folder)

    assert not follow_move(folder)
    with readable(folder) as seen:
        assert seen == folder
    assert content(folder) == before


@pytest.mark.parametrize("damaged", [b"", b"v2\n\xff\xfe", b'v2\n{"stateStoreInfo":'])
def test_a_damaged_file_stays_for_spark_to_refuse(tmp_path: Path, damaged: bytes) -> None:
    folder = checkpoint(tmp_path, f"file:{tmp_path}")
    (folder / METADATA / "12").write_bytes(damaged)

    assert not follow_move(folder)
    with readable(folder) as seen:
        assert seen == folder
    assert (folder / METADATA / "12").read_bytes() == damaged


def test_a_reader_sees_the_moved_checkpoint_and_changes_nothing(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path / "moved", "file:/gone")
    before = content(folder)

    with readable(folder) as seen:
        assert schemas(seen) == {f"file:{folder}/{SCHEMA}"}
        for name in ("commits/6", "bmq.json", "state/0/1/7.changelog"):
            assert (seen / name).read_bytes() == before[Path(name)]
    assert not seen.exists()
    assert content(folder) == before
