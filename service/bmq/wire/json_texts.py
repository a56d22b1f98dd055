"""Columns of JSON texts: functions that the renderers of whole columns share."""

import json
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from bmq.records import Bytes, Float64s

_ENCODER = json.JSONEncoder(ensure_ascii=False)  # json.dumps makes an encoder at each call, which is most of its time


def quote(text: str) -> str:
    """Return the text as a JSON string, with its quotes."""
    return _ENCODER.encode(text)


def escaped(texts: pa.Array, raw: Bytes) -> pa.Array:
    """Return the texts escaped for use inside JSON quotes; ``raw`` holds all their bytes."""
    if not ((raw < ord(" ")) | (raw == ord('"')) | (raw == ord("\\"))).any():
        return texts
    needy = pc.match_substring_regex(texts, r'[\x00-\x1f"\\]')
    return pc.replace_with_mask(texts, needy, pa.array([quote(t)[1:-1] for t in texts.filter(needy).to_pylist()]))


def value_pieces(dimensions: Sequence[str], values: Float64s) -> list[pa.Array | str]:
    """Return the pieces of `{"x":1.5,…}` for the columns of ``values`` (float64[d, n], finite)."""
    # Arrow writes the shortest text that reads back as the same number; for finite numbers this text is JSON.
    pieces: list[pa.Array | str] = []
    for dimension, column in zip(dimensions, values, strict=True):
        pieces += [f"{',' if pieces else '{'}{quote(dimension)}:", pa.array(column).cast(pa.string())]
    return [*pieces, "}"]
