"""The examples of the library's document and docstrings, and the notebooks, run as they stand."""

import doctest
import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.docs

ROOT = Path(__file__).parents[2]
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
BLOCKS = re.compile(r"```pycon\n(.*?)```", re.DOTALL)
NOTEBOOKS = {
    "vehicles": [r"36,000 positions gave \d+ events", r"(\d+) entries, \1 of them in the zone of their query"],
    "prices": [r"648,000 prices gave [\d,]+ events", r"[\d,]+ alerts = \d+ first seen \+ [\d,]+ crossings"],
}


def test_the_examples_of_the_document_are_what_the_library_does() -> None:
    text = (ROOT / "docs" / "library.md").read_text(encoding="utf-8")
    # One test of all blocks, each at its line: an example goes on where the one before it ended.
    parser, examples = doctest.DocTestParser(), []
    for block in BLOCKS.finditer(text):
        some = parser.get_examples(block[1])
        for example in some:
            example.lineno += text.count("\n", 0, block.start(1))
        examples += some
    assert len(examples) > 30
    test = doctest.DocTest(examples, {}, "docs/library.md", "docs/library.md", 0, text)

    report: list[str] = []
    doctest.DocTestRunner(optionflags=FLAGS).run(test, out=report.append)

    assert not report, "".join(report)


@pytest.mark.parametrize("module", ["feeds", "local_monitor", "bare_indexes", "bare_join"])
def test_the_examples_of_the_docstrings_are_what_the_library_does(module: str) -> None:
    results = doctest.testmod(importlib.import_module(f"bmq.library.{module}"), optionflags=FLAGS)

    assert results.attempted
    assert not results.failed


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_runs_to_its_end(name: str) -> None:
    assert sorted(path.stem for path in (ROOT / "notebooks").glob("*.py")) == sorted(NOTEBOOKS)
    ran = subprocess.run(
        [sys.executable, str(ROOT / "notebooks" / f"{name}.py")],
        capture_output=True,
        text=True,
        timeout=280,
        env=os.environ | {"PYTHONPATH": str(ROOT / "service")},
    )

    assert ran.returncode == 0, ran.stderr
    for line in NOTEBOOKS[name]:
        assert re.search(line, ran.stdout), ran.stdout
