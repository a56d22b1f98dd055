"""Commands as tuples with one place for each class: how frames and deltas hold them.

msgspec cannot tell two dataclasses of a union apart, so the place says which one it is. A put has a place for each
class of its query. A change of the places is a change of `frames.FORMAT` and of `job.replicas.FORMAT`.
"""

from bmq.records import Command, Delete, JoinQuery, Put, Query, Refused, RegionQuery

# Of each tuple one place is set.
AcceptedPlaces = tuple[Put[RegionQuery] | None, Put[JoinQuery] | None, Delete | None]
CommandPlaces = tuple[Put[RegionQuery] | None, Put[JoinQuery] | None, Delete | None, Refused | None]


def command_to_places(command: Command) -> CommandPlaces:
    """Return a command in its place."""
    if isinstance(command, Refused):
        return None, None, None, command
    return *accepted_to_places(command), None


def accepted_to_places(command: Put[Query] | Delete) -> AcceptedPlaces:
    """Return a command that the service has accepted in its place."""
    if isinstance(command, Delete):
        return None, None, command
    query = command.query
    if isinstance(query, JoinQuery):
        return None, Put(command.offset, query, command.due), None
    return Put(command.offset, query, command.due), None, None


def command_of_places(places: CommandPlaces) -> Command | None:
    """Return the command that is in its place; None: every place is empty."""
    put, join, delete, refused = places
    return put or join or delete or refused


def accepted_of_places(places: AcceptedPlaces) -> Put[Query] | Delete | None:
    """Return the accepted command that is in its place; None: every place is empty."""
    put, join, delete = places
    return put or join or delete
