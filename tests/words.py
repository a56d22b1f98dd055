"""The lint of words: `python -m tests.words` prints each use of a word that docs/glossary.md bans; exit code 1 if any.

The glossary's section "Words that the lint refuses" is the list: a row has the banned words, what to use instead and
the files. A word counts in identifiers, too: `told` is found in `n_told`, and not in `toldness`.
"""

import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
HEADING = "## Words that the lint refuses"


@dataclass(frozen=True, slots=True)
class Ban:
    """One row of the glossary.

    Attributes
    ----------
    words : the pattern of the banned words.
    instead : what to use, as the glossary says it.
    places : the patterns of the files in which they are banned, as `git ls-files` takes them.
    """

    words: re.Pattern[str]
    instead: str
    places: tuple[str, ...]


def read_bans(glossary: str) -> list[Ban]:
    """Return the bans of a glossary."""
    rows = re.findall(r"^\| (`.+?) \| (.+?) \| (`.+?) \|$", glossary.partition(HEADING)[2], re.MULTILINE)
    return [Ban(_pattern(_quoted(words)), instead, tuple(_quoted(places))) for words, instead, places in rows]


def find_banned(ban: Ban, text: str) -> Iterator[tuple[int, str]]:
    """Yield the line number and the word of each use of a banned word in a text."""
    for number, line in enumerate(text.splitlines(), start=1):
        for use in ban.words.finditer(line):
            yield number, use[0]


def main() -> int:
    """Print each use of a banned word in the files of the checkout; return how many there are, at most 1."""
    bans = read_bans((ROOT / "docs/glossary.md").read_text(encoding="utf-8"))
    assert bans, f"docs/glossary.md has no table below {HEADING!r}"
    n_found = 0
    for ban in bans:
        for name in _files(ban.places):
            for number, word in find_banned(ban, (ROOT / name).read_text(encoding="utf-8")):
                print(f"{name}:{number}: {word!r} is banned by docs/glossary.md. Use {ban.instead}.")
                n_found += 1
    return min(n_found, 1)


def _files(places: Sequence[str]) -> list[str]:
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *places]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
    return [name for name in listed if (ROOT / name).is_file()]


def _quoted(cell: str) -> list[str]:
    return re.findall(r"`(.+?)`", cell)


def _pattern(words: Sequence[str]) -> re.Pattern[str]:
    # Letters alone end a word, so that the parts of snake_case are words. "is none" does not mean the code `is None`.
    written = [form for word in words for form in (word, word.capitalize(), word.upper())]
    return re.compile(rf"(?<![A-Za-z])(?:{'|'.join(map(re.escape, written))})(?![a-z])")


if __name__ == "__main__":
    sys.exit(main())
