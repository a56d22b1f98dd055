"""The service's own rules for a definition, with or without its configuration."""

import json

from bmq.errors import ControlCode, ControlError
from bmq.records import Installation
from bmq.wire.control import validate_definition
from bmq.wire.definitions import read_definition


def check_definition(query_id: str, definition: bytes, installation: Installation | None) -> None:
    """Refuse a definition that the service would reject.

    In the compacted control topic such a definition would replace the definition in force.

    Parameters
    ----------
    installation : None if there is no configuration. The feeds are then unknown, and the rules that depend on them,
        such as valid coordinates, are not checked.

    Raises
    ------
    ControlError
        With the code that the service would reply.
    """
    if installation is not None:
        validate_definition(query_id, definition, installation)
        return
    try:
        read = json.loads(definition)
    except (ValueError, RecursionError):
        read = None
    if not isinstance(read, dict):
        raise ControlError(ControlCode.NOT_JSON, "The definition is no JSON object. Write one.")
    read_definition(read)
