"""A checkpoint that was moved, or copied to another place: one sort of Spark's files holds the address of a folder.

    state/0/_metadata/v2/N     …"stateSchemaFilePaths":["file:/old/place/state/0/_stateSchema/default/0_…"]…

Spark reads the schema of the state at that address, and fails if the old folder is gone. The schema itself is a file of
the checkpoint, so only the address is wrong. The old place may be another file system, of which this folder is a copy.
"""

import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_METADATA = "state/*/_metadata/v2/*"
_SCHEMA = re.compile(r'"((?:[^"\\]|\\.)*?)/state/(\d+)/_stateSchema/')


def follow_move(folder: Path) -> bool:
    """Let Spark's files name the folder where they are; return whether they named another one.

    Each file is replaced as a whole, so after a crash it names the old folder or this one.
    """
    return _name(folder, folder)


@contextmanager
def readable(folder: Path) -> Iterator[Path]:
    """Yield a folder with the content of a checkpoint, which Spark can read wherever it was written.

    If the checkpoint was moved, this is a temporary folder of hard links to its files, or of copies where another file
    system has the temporary folder. The checkpoint itself stays as it is.
    """
    if all(_named_here(_read(file), folder) is None for file in _files(folder)):
        yield folder
        return
    with tempfile.TemporaryDirectory(prefix="bmq-checkpoint-") as name:
        # No symbolic links: the file system by which Spark reads here does not follow them.
        copy = Path(shutil.copytree(folder, name, copy_function=_link_or_copy, dirs_exist_ok=True))
        _name(copy, folder)
        yield copy


def _link_or_copy(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system, or none with links
        shutil.copy2(source, target)


def _name(folder: Path, checkpoint: Path) -> bool:
    """Let the files in a folder name the checkpoint; return whether one named another."""
    has_moved = False
    for file in _files(folder):
        text = _named_here(_read(file), checkpoint)
        if text is not None:
            has_moved = True
            new = file.with_name(f".{file.name}.moved")
            new.write_text(text, encoding="utf-8", errors="surrogateescape")
            file.with_name(f".{file.name}.crc").unlink(missing_ok=True)  # of the old content; Hadoop needs none
            os.replace(new, file)
    return has_moved


def _files(folder: Path) -> list[Path]:
    found = folder.glob(_METADATA)
    return sorted(file for file in found if file.name.isdecimal())


def _named_here(text: str, checkpoint: Path) -> str | None:
    """Return the text with the address of this checkpoint; None: it has that address.

    A file that Spark cannot read names no schema, and so stays for Spark to refuse.
    """
    here = json.dumps(str(checkpoint.absolute()), ensure_ascii=False)[1:-1]
    # Spark writes file:/folder or file:///folder.
    if all(re.sub("^file:/+", "/", found[1]) == here for found in _SCHEMA.finditer(text)):
        return None
    return _SCHEMA.sub(lambda found: f'"file:{here}/state/{found[2]}/_stateSchema/', text)


def _read(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="surrogateescape")
