"""Every file that a document names is there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted(
    [*ROOT.glob("docs/*.md"), *ROOT.glob("docs/decisions/*.md"), *ROOT.glob("*.md"), ROOT / "tests/README.md"]
)
# A name with a folder: those without one stand for the folder that the text speaks of.
PATH = re.compile(r"`((?:[\w.-]+/)+[\w-]+\.(?:py|toml|yml|json|jsonl|md|txt))`")
# Files of a running service, and of a user.
ELSEWHERE = re.compile(r"var/|config/mine|<|path/")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_path_in_a_document_is_there(document: Path) -> None:
    places = [document.parent, ROOT, ROOT / "service/bmq", ROOT / "service/bmq/engines/feed", ROOT / "tests"]
    named = [name for name in PATH.findall(document.read_text(encoding="utf-8")) if not ELSEWHERE.match(name)]

    missing = [name for name in named if not any((place / name).is_file() for place in places)]

    assert not missing
