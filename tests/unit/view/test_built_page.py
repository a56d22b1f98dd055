"""The built files of the page are those of its sources: nobody changes one without the other."""

import hashlib
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
STATIC = ROOT / "service/bmq/view/static"
# As in web/scripts/digest.mjs.
SOURCES = [
    "web/src",
    "web/scripts",
    "web/index.html",
    "web/package.json",
    "web/package-lock.json",
    "web/tsconfig.json",
    "web/vite.config.ts",
    "docs/schemas",
]


def test_the_built_files_are_those_of_the_sources() -> None:
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *SOURCES]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a checkout of git, so nobody changes the sources here")
    digest = hashlib.sha256()
    for name in sorted(filter(None, listed.stdout.split("\n"))):
        digest.update(f"{name}\n".encode())
        digest.update((ROOT / name).read_bytes())

    built = (STATIC / "sources.sha256").read_text().strip()
    assert built == digest.hexdigest(), "web/ or docs/schemas have changed: build the page again with `make web`"


def test_nobody_changed_a_built_file_since_the_build() -> None:
    lines = (STATIC / "built.sha256").read_text().splitlines()
    recorded = {name: digest for digest, name in (line.split("  ", 1) for line in lines)}
    there = [path for path in STATIC.rglob("*") if path.is_file() and path.suffix != ".sha256"]

    digests = {path.relative_to(STATIC).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in there}
    assert digests == recorded, "a built file is not the one that `make web` wrote: build the page again"


def test_the_page_loads_nothing_from_elsewhere_and_has_no_script_of_its_own() -> None:
    page = (STATIC / "index.html").read_text()

    assert re.findall(r'(?:src|href)="([^"]+)"', page)
    assert all(link.startswith("./assets/") for link in re.findall(r'(?:src|href)="([^"]+)"', page))
    assert "style=" not in page
    assert re.findall(r"<script[^>]*>([^<]*)</script>", page) == [""]


def test_no_source_of_the_page_writes_markup_from_texts() -> None:
    for path in (ROOT / "web/src").glob("*.ts"):
        source = path.read_text()
        assert not re.search(r"\.innerHTML\s*=|insertAdjacentHTML|document\.write|\beval\(", source), path
