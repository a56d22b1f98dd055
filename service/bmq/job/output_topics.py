"""The topics that queries name for their events: there before the first event, or the query is refused.

Where a broker makes no topics by itself, an event for a topic that is not there would stop the whole job, and with it
every other query.
"""

from collections.abc import Sequence

from bmq.errors import ControlCode, SetupError
from bmq.job.plan import Plan
from bmq.records import Command, Put, Refused
from bmq.topics import Topics


class OutputTopics:
    """Makes the topics of one task's commands, each once."""

    def __init__(self, plan: Plan) -> None:
        self._options = plan.client_options
        self._there = {plan.events_topic}

    def ensure(self, commands: Sequence[Command]) -> list[Command]:
        """Return the commands; a put whose topic cannot be made is refused instead, with the broker's reason."""
        return [self._ensure(command) for command in commands]

    def _ensure(self, command: Command) -> Command:
        topic = command.query.output_topic if isinstance(command, Put) else None
        if topic is None or topic in self._there:
            return command
        assert isinstance(command, Put)
        try:
            Topics(self._options).make([topic])
        except SetupError as error:
            message = f"output_topic {topic!r} is not there and cannot be made: {error} Make it, or name another."
            return Refused(command.offset, command.query.query_id, ControlCode.BAD_OPTION, message)
        self._there.add(topic)
        return command
