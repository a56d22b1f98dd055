"""Record values to text: what is dropped before a text, and what is no text. Knows bytes, not what the text means."""

import codecs

from bmq.errors import DeadLetterCode
from bmq.wire.fault_texts import refuse

# The header that a serializer writes if it keeps its schemas in a registry: a magic byte and the schema id, big-endian.
REGISTRY_MAGIC = 0
REGISTRY_BYTES = 5


def text_of_record(value: bytes) -> str:
    """Return the text of a feed's record without its byte order mark.

    Raises
    ------
    ReadingError
        For the reasons of `read_text`.
    """
    try:
        return read_text(value)
    except ValueError as fault:
        refuse(DeadLetterCode.NOT_JSON, f"the record is no reading: {fault}. Send one as UTF-8")


def read_text(value: bytes) -> str:
    """Return the text of a record without its byte order mark.

    Raises
    ------
    ValueError
        The record is empty, is JSON behind the five bytes of a schema registry, or is not UTF-8. The message is a
        clause about the record: "it is empty".
    """
    text = value.removeprefix(codecs.BOM_UTF8)
    if not text.strip():
        raise ValueError("it is empty")
    if _is_behind_registry(text):
        schema_id = int.from_bytes(text[1:REGISTRY_BYTES], "big")
        raise ValueError(
            f"it is JSON behind the five bytes of a schema registry (0x00 and the schema id {schema_id}); have the "
            "producer serialize plain JSON"
        )
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"it is no UTF-8 at byte {error.start + len(value) - len(text)}") from None


def _is_behind_registry(value: bytes) -> bool:
    return value[0] == REGISTRY_MAGIC and value[REGISTRY_BYTES:].lstrip().startswith((b"{", b"["))
