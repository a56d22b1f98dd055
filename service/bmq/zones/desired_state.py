"""The desired state: the definitions of many queries in one file, or in a folder of files.

    zones/                       one definition, which has a `kind`: the query id is the name of the file
      downtown.json              {"kind": "border", "feed": …}
      harbour.yaml               many definitions: each name is a query id
                                 north-pier: {kind: border, feed: …}
                                 south-pier: {kind: border, feed: …}

Knows files. The service knows what a definition means.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bmq.errors import ServiceError
from bmq.wire.fault_texts import shorten
from bmq.wire.record_texts import read_text
from bmq.zones.yaml_texts import read_yaml

JSON_SUFFIXES = (".json",)
YAML_SUFFIXES = (".yaml", ".yml")


@dataclass(frozen=True, slots=True)
class DesiredQuery:
    """A definition in a file.

    Attributes
    ----------
    definition : JSON as Python reads it, unchecked.
    file : where it is, for messages.
    """

    query_id: str
    definition: dict[str, Any]
    file: str


def read_desired(path: Path) -> dict[str, DesiredQuery]:
    """Return the definitions of a file, or of all JSON and YAML files below a folder, by query id.

    Files and folders whose names begin with a dot are left out, and so are files with other suffixes.

    Raises
    ------
    ServiceError
        There is no such path; a file is not JSON or YAML, or holds no definitions; a query id is in two places.
    """
    if not path.exists():
        raise ServiceError(f"There is no file or folder {str(path)!r}. Give the path of one.")
    desired: dict[str, DesiredQuery] = {}
    for file in _files(path):
        for query_id, definition in _definitions(file):
            if query_id in desired:
                raise ServiceError(
                    f"Query {query_id!r} is in {desired[query_id].file} and in {file}. Take one of the two out."
                )
            desired[query_id] = DesiredQuery(query_id, definition, str(file))
    return desired


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    found = [file for file in path.rglob("*") if file.suffix.lower() in JSON_SUFFIXES + YAML_SUFFIXES]
    return sorted(
        file
        for file in found
        if file.is_file() and not any(part.startswith(".") for part in file.relative_to(path).parts)
    )


def _definitions(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    for document in _documents(file):
        if document is None:
            continue  # YAML with comments alone
        if not isinstance(document, dict):
            raise _other_form(file, f"is {shorten(document)}")
        if isinstance(document.get("kind"), str):
            yield file.stem, document
            continue
        for query_id, definition in document.items():
            if not isinstance(definition, dict):
                raise _other_form(file, f"has {shorten(definition)} as {shorten(query_id)}")
            yield query_id, definition


def _documents(file: Path) -> list[Any]:
    suffix = file.suffix.lower()
    if suffix not in JSON_SUFFIXES + YAML_SUFFIXES:
        raise ServiceError(f"File {str(file)!r} is neither .json nor .yaml nor .yml. Rename it.")
    try:
        text = read_text(file.read_bytes())
        return read_yaml(text) if suffix in YAML_SUFFIXES else [json.loads(text, object_pairs_hook=_unique_names)]
    except OSError as error:
        raise ServiceError(f"File {str(file)!r} cannot be read: {error.strerror}. Change its rights.") from None
    except RecursionError:
        raise ServiceError(f"File {str(file)!r} is nested too deeply. Correct it.") from None
    except ValueError as error:
        form = "YAML" if suffix in YAML_SUFFIXES else "JSON"
        raise ServiceError(f"File {str(file)!r} is no {form}: {error}. Correct it.") from None


def _unique_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    read: dict[str, Any] = {}
    for name, value in pairs:
        if name in read:
            raise ValueError(f"the name {shorten(name)} stands twice in one object")
        read[name] = value
    return read


def _other_form(file: Path, what: str) -> ServiceError:
    return ServiceError(
        f"File {str(file)!r} {what}, but a file has one definition, an object with a 'kind', or an object with query "
        "ids as names and definitions as values. Write one of these."
    )
