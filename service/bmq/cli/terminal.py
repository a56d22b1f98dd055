"""Shows text of others: ids, tags and reasons come from Kafka, and may hold what moves a terminal's cursor."""

import re

import typer

# Controls, with the C1 ones that some terminals obey; what separates lines; and what changes the direction of writing.
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def plain(text: str) -> str:
    """Return the text with each character that a reader cannot see as an escape of JSON; JSON stays JSON."""
    return _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def show_line(line: str, *, err: bool = False) -> None:
    """Write one line, whatever is in it."""
    typer.echo(plain(line), err=err)


def show_lines(text: str, *, err: bool = False) -> None:
    """Write a text of several lines of our own."""
    for line in text.split("\n"):
        show_line(line, err=err)
