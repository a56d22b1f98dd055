"""The topics that queries name for their events: made when the command is read, and looked at before each use.

    it is there, and the service may write ─► the events go there
    else                                   ─► they go to the events topic, with a header, and a reply says `degraded`

A look costs milliseconds, once for each batch and shard whose events need such a topic. To write and wait for a failure
would cost two minutes: the client tries that long whether a topic appears. Where the events of a query go is the only
thing that depends on the answer. So a batch that runs again decides as it did.

Knows topics and ids of queries, but no messages.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from threading import Lock

from bmq.errors import SetupError
from bmq.kafka_io.connect import Answer, Options, Unreachable, patiently
from bmq.kafka_io.topics import Topics

# Seconds for which no broker may answer; a producer waits as long.
PATIENCE_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class TopicUse:
    """The topics of queries that one shard needs in one batch.

    Attributes
    ----------
    named : those that commands of the batch name; they are made.
    users : topic -> ids of the queries whose events it gets.
    """

    shard: int
    batch: int
    named: frozenset[str]
    users: Mapping[str, frozenset[str]]


@dataclass(frozen=True, slots=True)
class TopicFaults:
    """What is wrong with them.

    Attributes
    ----------
    missing : topic -> why its events must go elsewhere.
    unsaid : ids of the queries for which a reply has to say so.
    """

    missing: Mapping[str, str]
    unsaid: frozenset[str]


NO_FAULTS = TopicFaults({}, frozenset())


class OutputTopics:
    """The topics of all queries in one run of the service, for all shards of one executor.

    Parameters
    ----------
    options : of a librdkafka client.
    """

    def __init__(self, options: Options) -> None:
        self._options = options
        self._topics: Topics | None = None
        # topic -> query id -> the shard and batch that say it. They say it again if the batch runs again.
        self._said: dict[str, dict[str, tuple[int, int]]] = {}
        self._lock = Lock()

    def look(self, use: TopicUse) -> TopicFaults:
        """Make the topics that commands name, and return which topics cannot be used.

        Raises
        ------
        Unreachable : no broker answers. The batch fails, and runs again at the next start.
        """
        with self._lock:
            return self._look(use)

    def _look(self, use: TopicUse) -> TopicFaults:
        topics = self._topics = self._topics or Topics(self._options)
        names = use.named | use.users.keys()
        missing = _patiently(lambda: topics.unusable(names))
        not_made: dict[str, str] = {}
        if to_make := sorted(use.named & missing.keys()):
            not_made = {name: why for name in to_make if (why := _patiently(partial(_make, topics, name))) is not None}
            missing = _patiently(lambda: topics.unusable(names))
        missing = {
            name: f"output_topic {name!r} cannot be made: {not_made[name]} Make it, or name another."
            if name in not_made
            else f"output_topic {name!r} cannot be used: {why}. Make it or open it, or put the query again."
            for name, why in missing.items()
        }
        return TopicFaults(missing, self._unsaid(use, missing))

    def _unsaid(self, use: TopicUse, missing: Mapping[str, str]) -> frozenset[str]:
        """Return the queries for which this shard has to say it; note that."""
        place = use.shard, use.batch
        unsaid: set[str] = set()
        for name, query_ids in use.users.items():
            if name not in missing:
                self._said.pop(name, None)
                continue
            said = self._said.setdefault(name, {})
            unsaid |= {query_id for query_id in query_ids if said.setdefault(query_id, place) == place}
        return frozenset(unsaid)


def _make(topics: Topics, name: str) -> str | None:
    """Make a topic; return why that is not possible."""
    try:
        topics.make([name])
    except Unreachable:
        raise
    except SetupError as error:
        return str(error)
    return None


def _patiently(ask: Callable[[], Answer]) -> Answer:
    return patiently(ask, lambda error: isinstance(error, Unreachable), PATIENCE_SECONDS)
