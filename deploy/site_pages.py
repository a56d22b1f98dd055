"""Makes pages of the site that are not files of docs/, and lets links between the documents work there.

    README.md ──► index.md            docs/decisions/ ──► decisions/index.md, a line for each
    bench/README.md ──► benchmarks.md    docs/schemas/ ──► schemas/index.md
    CHANGELOG.md ──► changelog.md

In the repository a link is relative to its file. On the site a link to a file that is no page becomes plain text.
mkdocs calls the functions (`hooks` in mkdocs.yml).
"""

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
PAGES = {"README.md": "index.md", "bench/README.md": "benchmarks.md", "CHANGELOG.md": "changelog.md"}
_LINK = re.compile(r"\[([^\]]*)\]\(([^)#\s]+)(#[^)\s]*)?\)")


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that are not files of docs/."""
    for source, page in PAGES.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=relinked(text, source, page)))
    decisions = sorted((ROOT / "docs" / "decisions").glob("0*.md"))
    lines = [f"- [{_title(path)}]({path.name})" for path in decisions]
    files.append(File.generated(config, "decisions/index.md", content=_list("Decisions", lines)))
    schemas = sorted((ROOT / "docs" / "schemas").glob("*.json"))
    lines = [f"- [{path.stem}]({path.name})" for path in schemas]
    files.append(File.generated(config, "schemas/index.md", content=_list("JSON Schemas", lines)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Return the text of a page of docs/ with the links of the site."""
    uri = page.file.src_uri
    return markdown if page.file.generated_by else relinked(markdown, f"docs/{uri}", uri)


def relinked(text: str, source: str, page: str) -> str:
    """Return a text with its links as the site has them.

    Parameters
    ----------
    source : the file of the text, relative to the repository.
    page : the page of the text, relative to the site.
    """

    def replaced(link: re.Match[str]) -> str:
        words, path, anchor = link[1], link[2], link[3] or ""
        if "://" in path:
            return link[0]
        target = _page_of(posixpath.normpath(posixpath.join(posixpath.dirname(source), path)))
        if target is None:
            return words
        return f"[{words}]({posixpath.relpath(target, posixpath.dirname(page) or '.')}{anchor})"

    return _LINK.sub(replaced, text)


def _page_of(path: str) -> str | None:
    """Return the page of a file or folder of the repository; None: it has none."""
    if path in ("docs/decisions", "docs/schemas"):
        return f"{path.removeprefix('docs/')}/index.md"
    return PAGES.get(path) or (path.removeprefix("docs/") if path.startswith("docs/") else None)


def _title(path: Path) -> str:
    return path.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")


def _list(title: str, lines: list[str]) -> str:
    return "\n".join([f"# {title}", "", *lines, ""])
