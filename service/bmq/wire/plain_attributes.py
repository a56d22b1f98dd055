"""From attributes as they stand in a plain record to their canonical text, by the rules of `wire.attributes`.

    "north"␟5␟        as `kernels.text.plain_records.gather_attributes` gives it; ␟ is the separator
    "north"␟5.0␟null

Called once for each text that differs, not for each reading; and texts come back from batch to batch.
"""

from functools import lru_cache

from bmq.wire.attributes import NULL, OTHER, SEPARATOR, attribute_text, concat_attributes
from bmq.wire.csv_readings import read_cell
from bmq.wire.readings_exact import read_json

# Texts of some ten bytes: a few megabytes. More do not help a feed whose attributes hardly ever come back.
_CACHED_TEXTS = 16_384


@lru_cache(_CACHED_TEXTS)
def text_of_plain_json(raw: bytes) -> str:
    """Return the canonical text of JSON values; nothing at all is absent, a bracket alone a list or an object."""
    return concat_attributes(map(_text_of_json, raw.decode().split(SEPARATOR)))


@lru_cache(_CACHED_TEXTS)
def text_of_plain_csv(raw: bytes) -> str:
    """Return the canonical text of cells without quotes; an empty one is absent."""
    return concat_attributes(
        attribute_text(read_cell(cell)) if cell else NULL for cell in raw.decode().split(SEPARATOR)
    )


def _text_of_json(value: str) -> str:
    if not value:
        return NULL
    if value in ("[", "{"):
        return OTHER
    if value[0] == '"' and "\\" not in value:
        return value  # what nothing is escaped in is canonical already
    return attribute_text(read_json(value))
