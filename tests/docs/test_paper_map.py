"""The paper map is complete, and what it names is there."""

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.docs

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "paper-map.md").read_text()
ROWS = [
    [cell.strip() for cell in line.strip().strip("|").split("|")] for line in TEXT.splitlines() if line.startswith("|")
]
PAPERS = {
    "BMQ-Index": range(6, 10),
    "BMQ-Processor": range(10, 26),
    "VCI and VCR": (6, 7, 12, 13),
    "Spatial Join CQ": range(15, 19),
}


def test_no_cell_is_empty() -> None:
    assert len(ROWS) > 50
    assert all(len(row) == 5 and all(row) for row in ROWS)


def test_every_file_that_the_map_names_is_there() -> None:
    paths = re.findall(r"`([a-z]+/[\w/.]+\.py)`", TEXT)

    assert len(paths) > 100
    assert [path for path in paths if not (ROOT / path).is_file()] == []


@pytest.mark.parametrize("paper", PAPERS)
def test_every_figure_with_a_measurement_has_a_row(paper: str) -> None:
    section = re.search(rf"^## {paper} .*?(?=^## |\Z)", TEXT, re.MULTILINE | re.DOTALL)
    assert section is not None
    named: set[int] = set()
    for first, last in re.findall(r"Fig\. (\d+)(?:(?: to |, )(\d+))?", section[0]):
        named.update(range(int(first), int(last or first) + 1))

    assert set(PAPERS[paper]) - named == set()
