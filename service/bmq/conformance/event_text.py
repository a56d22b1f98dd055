"""Events as the one-line texts of scenarios, and the stream or pair that each text is about."""

from collections.abc import Set
from decimal import Decimal
from enum import StrEnum

from bmq.conformance.scenario import BASE_MS, Json


class Lack(StrEnum):
    """What the answers of another system do not have; nobody compares it then."""

    REASON = "reason"  # of a border event
    CODE = "code"  # of a command or a record that the system refuses


def event_text(event: Json, prefix: str) -> str:
    """Return the text of an event of any kind, its query id without the scenario's prefix.

    Raises
    ------
    KeyError
        The event lacks a field that its kind must have.
    """
    query_id = event["query_id"].removeprefix(prefix)
    at = _seconds(event["event_time"])
    match event["kind"]:
        case "border":
            text = f"{event['sign']}{query_id} {event['stream_id']}@{at} {event['reason']}"
            text += " pass" if event.get("pass") else ""
            confirmed = event.get("confirmed_time")
            return text if confirmed is None else f"{text} confirmed@{_seconds(confirmed)}"
        case "transition":
            return f"{event['pattern']} {query_id} {event['stream_id']}@{_seconds(event['began'])}..{at}"
        case "match" | "select" as kind:
            return f"{kind} {query_id} {event['stream_id']}@{at}"
        case "band_join" if "sign" in event:
            return f"{event['sign']}{query_id} {_pair(event)}@{at}"
        case kind:
            return f"{kind} {query_id} {_pair(event)}@{at}"


def comparable(text: str, lacks: Set[Lack]) -> str:
    """Return an event's text without the reason, if the system's events have no reason."""
    words = text.split(" ")
    # Only the texts of border events have a third word, unless they are about a pattern.
    if Lack.REASON in lacks and text[0] in "+-":
        del words[2:3]
    return " ".join(words)


def about(text: str) -> str:
    """Return the stream, or the pair left~right, of an event's text: what stands before the first ``@``."""
    return text.partition("@")[0].rpartition(" ")[2]


def by_stream(texts: list[str]) -> dict[str, list[str]]:
    """Return the texts of each stream or pair in their order; the order between streams is free."""
    lists: dict[str, list[str]] = {}
    for text in texts:
        lists.setdefault(about(text), []).append(text)
    return lists


def _pair(event: Json) -> str:
    """Return the streams left~right; of an answer that changed, only the one that changed it is there."""
    sides = [event[side]["stream_id"] if side in event else "" for side in ("left", "right")]
    if not any(sides):
        raise KeyError("left or right")
    return "~".join(sides)


def _seconds(event_time: int) -> str:
    """Return epoch milliseconds as seconds of the scenario: "1.5", and "2" rather than "2.0"."""
    return f"{(Decimal(event_time - BASE_MS) / 1000).normalize():f}"
