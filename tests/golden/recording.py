"""What a run of the program wrote, and the files that keep it.

    recorded/messages.jsonl   one message a line, readable: events, membership, replies, dead letters
    recorded/bytes.jsonl      formats, then name, length and digest of each binary part
    recorded/bytes.xz         these parts one behind the other, in the order of bytes.jsonl

Bytes that are no UTF-8 stand in messages as the escapes that `surrogateescape` gives. Knows files, not what the bytes
mean.
"""

import hashlib
import json
import lzma
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

RECORDED = Path(__file__).parent / "recorded"
AS_ABOVE = "as above"  # the value of a message whose value stands in another one already
_MESSAGES, _PARTS, _BYTES = "messages.jsonl", "bytes.jsonl", "bytes.xz"


@dataclass(frozen=True, slots=True)
class Blob:
    """A binary part; ``of`` names the FORMAT that it is bound to: "state", "checkpoint" or "frames"."""

    of: str
    content: bytes


@dataclass(frozen=True, slots=True)
class Recording:
    """What one run of the program wrote.

    Attributes
    ----------
    formats : "state", "checkpoint" and "frames" -> the FORMAT of that layout, and the module that has it.
    versions : library -> version, of libraries whose own bytes are in frames.
    inputs : for each batch a digest of all that came in up to it.
    messages : one JSON object each.
    blobs : name -> part; a name begins with the number of the batch.
    """

    formats: dict[str, tuple[int, str]]
    versions: dict[str, str]
    inputs: list[str]
    messages: list[str]
    blobs: dict[str, Blob]


def write_recording(recording: Recording, folder: Path = RECORDED) -> None:
    """Write the files of a recording over the ones before."""
    folder.mkdir(exist_ok=True)
    head = {
        "formats": {layout: number for layout, (number, _) in recording.formats.items()},
        "versions": recording.versions,
        "inputs": recording.inputs,
    }
    parts = [
        {"name": name, "of": blob.of, "bytes": len(blob.content), "sha256": _digest(blob.content)}
        for name, blob in recording.blobs.items()
    ]
    _write_lines(folder / _MESSAGES, recording.messages)
    _write_lines(folder / _PARTS, map(json.dumps, [head, *parts]))
    content = b"".join(blob.content for blob in recording.blobs.values())
    (folder / _BYTES).write_bytes(lzma.compress(content, preset=9 | lzma.PRESET_EXTREME))


def read_recording(folder: Path = RECORDED) -> Recording:
    """Return the recording in a folder; the modules of its formats are not in it."""
    head, *parts = [json.loads(line) for line in _read_lines(folder / _PARTS)]
    content = lzma.decompress((folder / _BYTES).read_bytes())
    blobs: dict[str, Blob] = {}
    begin = 0
    for part in parts:
        blob = Blob(part["of"], content[begin : begin + part["bytes"]])
        begin += part["bytes"]
        assert _digest(blob.content) == part["sha256"], f"{_BYTES} does not belong to {_PARTS}"
        blobs[part["name"]] = blob
    numbers: dict[str, Any] = head["formats"]
    return Recording(
        {layout: (number, "") for layout, number in numbers.items()},
        head["versions"],
        head["inputs"],
        _read_lines(folder / _MESSAGES),
        blobs,
    )


def _digest(content: bytes) -> str:
    """Return the beginning of a digest: it shows a reviewer which parts changed, and the bytes themselves are kept."""
    return hashlib.sha256(content).hexdigest()[:16]


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _read_lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").split("\n")[:-1]
