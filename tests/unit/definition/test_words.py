"""`tests.words`: the lint of words finds what the glossary bans, and nothing else."""

from tests.words import HEADING, find_banned, read_bans

GLOSSARY = f"""
| `told` | *not this table* | `x` |

{HEADING}

| banned | use instead | in |
|---|---|---|
| `told`, `is none` | *emit* | `service/*.py`, `docs/*.md` |
"""


def test_a_ban_is_a_row_below_its_heading() -> None:
    (ban,) = read_bans(GLOSSARY)

    assert (ban.instead, ban.places) == ("*emit*", ("service/*.py", "docs/*.md"))


def test_a_banned_word_is_found_in_text_and_in_identifiers() -> None:
    (ban,) = read_bans(GLOSSARY)

    text = "It is TOLD.\nn_told = as_told2\nNothing here: toldness, retold, x is None\nThat is none."
    assert list(find_banned(ban, text)) == [(1, "TOLD"), (2, "told"), (2, "told"), (4, "is none")]
