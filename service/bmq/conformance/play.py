"""Plays scenarios, all in step, against any back-end, and says what differs from what they expect.

Step i of every scenario is played together: a service that serves them all waits once a step and not once a scenario.
A scenario with a restart begins some steps later if then one restart of the service serves several scenarios. Knows the
rules of the format; a back-end knows how bytes reach the service and come back.
"""

from collections import Counter
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field
from itertools import chain, zip_longest
from typing import Protocol

from bmq.conformance.event_text import Lack, by_stream, comparable, event_text
from bmq.conformance.scenario import Commands, Dead, Expect, Json, Publish, Restart, Scenario, Step

ControlRecord = tuple[str, bytes | None]


@dataclass
class Seen:
    """What the service wrote since it was last asked; ``dead`` holds (topic, code)."""

    replies: list[Json] = field(default_factory=list)
    events: list[Json] = field(default_factory=list)
    dead: list[tuple[str, str]] = field(default_factory=list)


class Backend(Protocol):
    """How steps reach a service, and how its answers come back. The topic of a feed has the feed's name."""

    def restart(self, how: str) -> None:
        """End the service by "kill" or "stop", and start it on the same state."""

    def command(self, records: Sequence[ControlRecord]) -> list[int]:
        """Publish to the control topic; return the offsets."""

    def publish(self, feed: str, values: Sequence[bytes]) -> None:
        """Publish record values to one partition of the feed's topic, in this order and as one batch."""

    def settle(self) -> Seen:
        """Wait until all that was published is processed; return what was written since the last call."""


@dataclass(frozen=True)
class Outcome:
    """What differs from one scenario's expectations; nothing: it passed."""

    scenario: Scenario
    differences: tuple[str, ...]
    n_repeated: int

    @property
    def passed(self) -> bool:
        """Whether nothing differs."""
        return not self.differences


def play(scenarios: Sequence[Scenario], backend: Backend, lacks: Set[Lack] = frozenset()) -> list[Outcome]:
    """Return the outcome of each scenario, in their order.

    ``lacks`` says what the answers of the back-end do not have, and what is therefore not compared.
    """
    delays = _delays(scenarios)
    plays = [_Play(scenario, delay, lacks) for scenario, delay in zip(scenarios, delays, strict=True)]
    rows = [(None,) * delay + scenario.steps for scenario, delay in zip(scenarios, delays, strict=True)]
    for steps in zip_longest(*rows):
        for one in plays:
            one.n_steps += 1
        for how in sorted({step.how for step in steps if isinstance(step, Restart)}):
            backend.restart(how)
        _send(backend, plays, steps)
        seen = backend.settle()
        for one, step in zip(plays, steps, strict=True):
            one.take(seen)
            one.check(step)
    return [one.outcome() for one in plays]


def _delays(scenarios: Sequence[Scenario]) -> list[int]:
    """Return by how many steps each scenario begins later, so that all restarts of a kind fall together.

    They meet at the latest of their kind. A scenario with several restarts is not delayed, since the steps between them
    are its own.
    """
    restarts = [
        [(number, step.how) for number, step in enumerate(scenario.steps) if isinstance(step, Restart)]
        for scenario in scenarios
    ]
    latest: dict[str, int] = {}
    for number, how in chain.from_iterable(restarts):
        latest[how] = max(latest.get(how, 0), number)
    return [latest[found[0][1]] - found[0][0] if len(found) == 1 else 0 for found in restarts]


def _send(backend: Backend, plays: Sequence["_Play"], steps: Sequence[Step | None]) -> None:
    commands = [
        (one, record, step.reply)
        for one, step in zip(plays, steps, strict=True)
        if isinstance(step, Commands)
        for record in step.records
    ]
    offsets = backend.command([record for _, record, _ in commands]) if commands else []
    for offset, (one, (query_id, _), reply) in zip(offsets, commands, strict=True):
        one.awaits(offset, query_id, reply)
    for step in steps:
        if isinstance(step, Publish):
            backend.publish(step.feed, step.values)


class _Play:
    """One scenario under way: what was emitted since its last checks, and what differed so far."""

    def __init__(self, scenario: Scenario, delay: int, lacks: Set[Lack]) -> None:
        self._scenario = scenario
        self._lacks = lacks
        self._differences = [scenario.broken] if scenario.broken else []
        self.n_steps = -delay  # counts the scenario's own steps
        self._awaited: dict[int, tuple[str, str]] = {}
        self._event_ids: set[str] = set()
        self._texts: list[str] = []
        self._dead: Counter[str] = Counter()
        self._n_repeated = 0

    def awaits(self, offset: int, query_id: str, reply: str) -> None:
        """Expect a reply to the command at a control offset."""
        self._awaited[offset] = (query_id, reply)

    def take(self, seen: Seen) -> None:
        """Keep what belongs to this scenario; answer its commands; drop events seen before."""
        prefix = self._scenario.prefix
        for reply in seen.replies:
            # A reply that comes again after a restart, or that answers no command (expired), is passed over.
            awaited = self._awaited.pop(reply.get("control_offset", -1), None)
            if awaited is not None:
                self._match(reply, *awaited)
        self._dead.update(code for topic, code in seen.dead if topic.startswith(prefix))
        for event in seen.events:
            if not event["query_id"].startswith(prefix):
                continue
            if event["event_id"] in self._event_ids:
                self._n_repeated += 1
                continue
            self._event_ids.add(event["event_id"])
            try:
                self._texts.append(comparable(event_text(event, prefix), self._lacks))
            except LookupError as error:
                self._differs(f"event {event} has no {error}")

    def check(self, step: Step | None) -> None:
        """Compare with what the step expects, once what it published has been processed."""
        for query_id, reply in self._awaited.values():
            self._differs(f"no reply to {self._name(query_id)}, expected {reply}")
        self._awaited.clear()
        if isinstance(step, Dead):
            if not self._are_equal(self._dead, Counter(step.counts)):
                self._differs(f"dead letters {dict(self._dead)}, expected {step.counts}")
            self._dead.clear()
        if isinstance(step, Expect):
            expected = [comparable(text, self._lacks) for text in step.texts]
            for difference in _compare(by_stream(self._texts), by_stream(expected)):
                self._differs(difference)
            self._texts.clear()

    def outcome(self) -> Outcome:
        """Return what differed, with the number of events that came again."""
        return Outcome(self._scenario, tuple(self._differences), self._n_repeated)

    def _match(self, reply: Json, query_id: str, expected: str) -> None:
        status = reply["status"] + (f":{reply['error']['code']}" if "error" in reply else "")
        if Lack.CODE in self._lacks:
            status, expected = status.partition(":")[0], expected.partition(":")[0]
        if (reply["query_id"], status) != (query_id, expected):
            reason = reply.get("error", {}).get("message", "")
            message = f" ({reason})" if reason else ""
            self._differs(f"{self._name(reply['query_id'])} {status}{message}, expected {expected}")

    def _are_equal(self, dead: Counter[str], expected: Counter[str]) -> bool:
        return dead.total() == expected.total() if Lack.CODE in self._lacks else dead == expected

    def _differs(self, difference: str) -> None:
        self._differences.append(f"step {self.n_steps}: {difference}")

    def _name(self, query_id: str) -> str:
        return query_id.removeprefix(self._scenario.prefix)


def _compare(emitted: dict[str, list[str]], expected: dict[str, list[str]]) -> Iterable[str]:
    for stream in sorted(emitted.keys() | expected.keys()):
        if emitted.get(stream, []) != expected.get(stream, []):
            yield f"of {stream} came {emitted.get(stream, [])}, expected {expected.get(stream, [])}"
