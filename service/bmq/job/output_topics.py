"""The output topics of queries: the service creates them before the first event, or rejects the query.

If the broker does not create topics by itself, an event for a missing topic would stop the whole job, and with it every
other query.
"""

from collections.abc import Sequence

from bmq.errors import ControlCode, SetupError
from bmq.job.plan import Plan
from bmq.kafka_io.connect import Unreachable
from bmq.kafka_io.topics import Topics
from bmq.records import Command, Put, Refused


class OutputTopics:
    """Creates the topics that the commands of one task name, each once."""

    def __init__(self, plan: Plan) -> None:
        self._options = plan.client_options
        self._there = {plan.events_topic}

    def ensure(self, commands: Sequence[Command]) -> list[Command]:
        """Return the commands; a put becomes `Refused`, with the broker's reason, if its topic cannot be created.

        Raises
        ------
        Unreachable : no broker answers. The batch fails and runs again: no query may be rejected because of an outage.
        """
        named = {command.query.output_topic for command in commands if isinstance(command, Put)}
        missing = sorted(topic for topic in named if topic is not None and topic not in self._there)
        if not missing:
            return list(commands)
        topics = Topics(self._options)
        refused: dict[str, str] = {}
        for topic in missing:
            try:
                topics.make([topic])
                self._there.add(topic)
            except Unreachable:
                raise
            except SetupError as error:
                refused[topic] = f"output_topic {topic!r} cannot be made: {error} Make it, or name another."
        return [_refused_if(command, refused) for command in commands]


def _refused_if(command: Command, refused: dict[str, str]) -> Command:
    topic = command.query.output_topic if isinstance(command, Put) else None
    if topic is None or topic not in refused:
        return command
    assert isinstance(command, Put)
    return Refused(command.offset, command.query.query_id, ControlCode.BAD_OPTION, refused[topic])
