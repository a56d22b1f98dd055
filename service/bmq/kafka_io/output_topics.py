"""The topics that queries name for their events: made when the command is read, and looked at before each use.

    it is there, accepts the events, and the service may write ─► the events go there
    else                                   ─► they go to the events topic, with a header, and a reply says `degraded`

A look costs milliseconds, once for each batch and shard whose events need such a topic. To write and wait for a failure
would cost two minutes: the client tries that long whether a topic appears. Where the events of a query go is the only
thing that depends on the answer, so a batch that runs again has the same events, perhaps in another place.

Knows topics and ids of queries, but no messages.
"""

import time
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from functools import partial
from threading import Lock

from bmq.errors import SetupError
from bmq.kafka_io.connect import RETRY_SECONDS, Answer, Options, Unreachable, patiently
from bmq.kafka_io.sender import LONGEST_MESSAGE_BYTES, TooLarge
from bmq.kafka_io.topics import Topics

# Seconds for which no broker may answer; a producer waits as long.
PATIENCE_SECONDS = 120.0

# Bytes of headers and of the frame of a batch of records, which a message needs besides key and value.
ROOM_BYTES = 4_096

# Seconds in which all brokers hear of a new topic; it takes milliseconds.
NEW_TOPIC_SECONDS = 5.0


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
    unreported : ids of the queries for which a reply has to say so.
    """

    missing: Mapping[str, str]
    unreported: frozenset[str]


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
        # topic -> bytes of key and value of a message that was too large for it.
        self._refused: dict[str, int] = {}
        # topic -> query id -> the shard and batch that report it. They report it again if the batch runs again.
        self._reported: dict[str, dict[str, tuple[int, int]]] = {}
        self._lock = Lock()

    def look(self, use: TopicUse) -> TopicFaults:
        """Make the topics that commands name, and return which topics cannot be used.

        Raises
        ------
        Unreachable : no broker answers. The batch fails, and runs again at the next start.
        """
        topics = self._topics = self._topics or Topics(self._options)
        names = use.named | use.users.keys()
        missing = _patiently(lambda: topics.unusable(names))
        not_made: dict[str, str] = {}
        if to_make := sorted(use.named & missing.keys()):
            not_made = {name: why for name in to_make if (why := _patiently(partial(_make, topics, name))) is not None}
            # The broker that is asked now may hear of a new topic later than the one that was asked before.
            end = time.monotonic() + NEW_TOPIC_SECONDS
            while (missing := _patiently(lambda: topics.unusable(names))).keys() & (set(to_make) - not_made.keys()):
                if time.monotonic() > end:
                    break
                time.sleep(RETRY_SECONDS)
        missing = {
            name: f"output_topic {name!r} cannot be made: {not_made[name]} Make it, or name another."
            if name in not_made
            else f"output_topic {name!r} cannot be used: {why}. Make it or open it, or put the query again."
            for name, why in missing.items()
        }
        missing |= self._too_small(topics, names - missing.keys())
        with self._lock:
            return TopicFaults(missing, self._report(use, missing))

    def refuse(self, error: TooLarge, batch_bytes: int) -> int:
        """Note in an error what its topic accepts, and return the bytes of a batch of records from now on.

        If the topic accepts less than a batch, the next batches are smaller. Only then it shows whether one message is
        too large.

        Parameters
        ----------
        batch_bytes : of the batches until now.
        """
        topics = self._topics = self._topics or Topics(self._options)
        found = _patiently(lambda: topics.limit(error.topic))
        smallest = 1 if found is None else found  # with 1, each message is alone
        if smallest < batch_bytes:
            error.is_batch = True
            return smallest
        # The client has a limit, too. A topic whose limit nobody may ask for accepts less than what it has refused.
        of_client = int(self._options.get("message.max.bytes", LONGEST_MESSAGE_BYTES))
        error.limit = min(of_client, error.n_bytes if found is None else found)
        with self._lock:
            self._refused[error.topic] = error.n_bytes
        return batch_bytes

    def _too_small(self, topics: Topics, names: Set[str]) -> dict[str, str]:
        """Return which topics have refused a message for its size, and still would, with a sentence for each."""
        found: dict[str, str] = {}
        with self._lock:
            refused = {name: self._refused[name] for name in names & self._refused.keys()}
        for name, n_bytes in refused.items():
            limit = _patiently(partial(topics.limit, name))
            if limit is not None and limit > n_bytes + ROOM_BYTES:
                with self._lock:
                    if self._refused.get(name) == n_bytes:  # unless it has refused a larger one meanwhile
                        del self._refused[name]
            else:
                allowed = "fewer" if limit is None else f"at most {limit}"
                way_out = (
                    "Set its max.message.bytes higher, and start the service again: it may not read the limit."
                    if limit is None
                    else "Set its max.message.bytes higher."
                )
                found[name] = (
                    f"output_topic {name!r} accepts {allowed} bytes in a record, and the key and value of an event "
                    f"have {n_bytes}. {way_out}"
                )
        return found

    def forget(self, shard: int, batch: int) -> None:
        """Forget what a batch of a shard was to report: an earlier run has written it, and may not have reported it."""
        with self._lock:
            for reported in self._reported.values():
                for query_id in [query_id for query_id, place in reported.items() if place == (shard, batch)]:
                    del reported[query_id]

    def _report(self, use: TopicUse, missing: Mapping[str, str]) -> frozenset[str]:
        """Return the queries for which this shard has to report the loss; note that."""
        place = use.shard, use.batch
        unreported: set[str] = set()
        for name, query_ids in use.users.items():
            if name not in missing:
                self._reported.pop(name, None)
                continue
            reported = self._reported.setdefault(name, {})
            unreported |= {query_id for query_id in query_ids if reported.setdefault(query_id, place) == place}
        return frozenset(unreported)


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
