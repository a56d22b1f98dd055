"""Definitions as text: one canonical line to compare, and lines for people to read and to compare."""

import difflib
import json
from collections.abc import Iterator
from typing import Any

LONGEST_DIFF = 200  # lines of one query; a polygon may have 10,000 vertices


def canonical_text(definition: Any) -> str:
    """Return the same text for definitions that are equal as JSON; 1 and 1.0 and true are three values."""
    return json.dumps(definition, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def diff_lines(query_id: str, before: Any, after: Any) -> list[str]:
    """Return a unified diff of two definitions; None stands for a query that is not there."""
    lines = list(
        difflib.unified_diff(
            _lines(before),
            _lines(after),
            "/dev/null" if before is None else f"registered/{query_id}",
            "/dev/null" if after is None else f"desired/{query_id}",
            lineterm="",
        )
    )
    if len(lines) > LONGEST_DIFF:
        return [*lines[:LONGEST_DIFF], f"… {len(lines) - LONGEST_DIFF} more lines of {query_id}"]
    return lines


def _lines(definition: Any) -> list[str]:
    if definition is None:
        return []
    if isinstance(definition, str):  # the topic may contain anything
        return definition.splitlines()
    return list(_written(definition, "", ""))


def _written(value: Any, indent: str, name: str) -> Iterator[str]:
    """Yield the lines of a value: a position is one line, so that a moved vertex is one line of the diff."""
    if isinstance(value, dict) and value:
        yield f"{indent}{name}{{"
        for key in sorted(value):
            yield from _written(value[key], f"{indent}  ", f"{json.dumps(key, ensure_ascii=False)}: ")
        yield f"{indent}}}"
    elif isinstance(value, list) and any(isinstance(one, list | dict) for one in value):
        yield f"{indent}{name}["
        for one in value:
            yield from _written(one, f"{indent}  ", "")
        yield f"{indent}]"
    else:
        yield f"{indent}{name}{json.dumps(value, ensure_ascii=False)}"
