"""Commands as tuples with one place for each class, for frames and deltas.

msgspec cannot distinguish two dataclasses of a union, so the position in the tuple names the class. A put has one
place for each class of query. Whoever changes the places must raise `frames.FORMAT` and `job.replicas.FORMAT`.
"""

from bmq.records import Command, Delete, JoinQuery, Put, Query, Refused, RegionQuery

# Exactly one place of each tuple is set; the others are None.
AcceptedPlaces = tuple[Put[RegionQuery] | None, Put[JoinQuery] | None, Delete | None]
CommandPlaces = tuple[Put[RegionQuery] | None, Put[JoinQuery] | None, Delete | None, Refused | None]


def command_to_places(command: Command) -> CommandPlaces:
    """Return the tuple that holds a command."""
    if isinstance(command, Refused):
        return None, None, None, command
    return *accepted_to_places(command), None


def accepted_to_places(command: Put[Query] | Delete) -> AcceptedPlaces:
    """Return the tuple that holds an accepted command."""
    if isinstance(command, Delete):
        return None, None, command
    query = command.query
    if isinstance(query, JoinQuery):
        return None, Put(command.offset, query, command.due), None
    return Put(command.offset, query, command.due), None, None


def command_of_places(places: CommandPlaces) -> Command | None:
    """Return the command that a tuple holds; None: every place is empty."""
    put, join, delete, refused = places
    return put or join or delete or refused


def accepted_of_places(places: AcceptedPlaces) -> Put[Query] | Delete | None:
    """Return the accepted command that a tuple holds; None: every place is empty."""
    put, join, delete = places
    return put or join or delete
