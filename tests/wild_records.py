"""Records as any producer may send them: every part of a record drawn at random, from what has gone wrong somewhere.

Seeded, so that a failure comes again. Knows the forms of readings and definitions, but not the service.
"""

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass

LONGEST = 2**63 - 1
SPARKS_LIMIT_MS = LONGEST // 1000  # a later time is no 64-bit number of microseconds
# Settings of a topic that takes any timestamp; by default Kafka refuses one that is hours ahead.
ANY_TIME = {"message.timestamp.before.max.ms": str(LONGEST), "message.timestamp.after.max.ms": str(LONGEST)}

# Kafka reads -1 as "no timestamp", and librdkafka 0 as "now".
TIMESTAMPS = (
    *(0, 1, -1, -2, 1_700_000_000_000, 1_700_000_000_000_000, 1_700_000_000_000_000_000),
    *(SPARKS_LIMIT_MS, SPARKS_LIMIT_MS + 1, -SPARKS_LIMIT_MS, -SPARKS_LIMIT_MS - 1),
    *(LONGEST, -LONGEST - 1, 2**62, -(2**62), -62_135_596_800_001, 253_402_300_800_000),
)
COMPRESSIONS = ("none", "gzip", "snappy", "lz4", "zstd")

_TEXTS = ("", "a", "é", "\0", "\x7f", "\u2028", "\ufeff", '"', "\\", "\n", "🚗", "a" * 300, "a" * 1_025)
_JUNK = (b"", b"\0", b"\xff\xfe", b"\xed\xa0\x80", b"\xc3", b"null", b"[]", b"{}", b'"', b"\\", b"-", b"1e999")
_NUMBERS = (
    "0",
    "-0",
    "1",
    "5.5",
    "1e999",
    "-1e-999",
    "NaN",
    "Infinity",
    "9" * 5_000,
    "1." + "1" * 5_000,
    "null",
    "true",
)
_OTHERS = ('"5"', "[1]", "{}", '"\\ud800"', '"\\u0000"', "[" * 90 + "]" * 90, "[" * 5_000 + "]" * 5_000, "01", "+1", "")


@dataclass(frozen=True)
class WildRecord:
    """One record. ``timestamp`` in milliseconds; ``transaction``: None, "commit" or "abort"."""

    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, str | bytes | None]]
    timestamp: int
    compression: str
    transaction: str | None


class WildRecords:
    """Draws records for a feed of the fields `id`, `ts` and `x`, for the control topic and for the clock topic."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def for_feed(self, n: int) -> list[WildRecord]:
        """Return ``n`` records of a feed; some of them are readings."""
        return [self._record(self._reading()) for _ in range(n)]

    def for_control(self, n: int, feed: str) -> list[WildRecord]:
        """Return ``n`` records of the control topic; some of them are definitions over ``feed``."""
        return [self._record(self._definition(feed)) for _ in range(n)]

    def for_clock(self, n: int, feed: str) -> list[WildRecord]:
        """Return ``n`` records of the clock topic; some of them are marks of ``feed``."""
        return [self._record(self._mark(feed)) for _ in range(n)]

    def _record(self, value: bytes | None) -> WildRecord:
        draw = self._random
        n_headers = draw.choice((0, 0, 0, 1, 3, 200))
        names = (*_TEXTS, "topic", "offset", "event_id")
        return WildRecord(
            key=draw.choice((None, *_JUNK, *(text.encode() for text in _TEXTS), draw.randbytes(8))),
            value=value,
            headers=[(draw.choice(names), draw.choice((None, *_JUNK, draw.randbytes(20)))) for _ in range(n_headers)],
            timestamp=draw.choice(TIMESTAMPS),
            compression=draw.choice(COMPRESSIONS),
            transaction=draw.choice((None, None, "commit", "abort")),
        )

    def _reading(self) -> bytes | None:
        fields = {
            "id": self._any_of([json.dumps(text) for text in _TEXTS], 0.8),
            "ts": self._any_of(("0", "1000", "-1", "1.5", '"2023-11-14T22:13:20Z"', "253402300799999"), 0.8),
            "x": self._any_of(("0", "5", "-0.0", "1e308", "5e-324"), 0.8),
        }
        return self._spoilt(fields)

    def _definition(self, feed: str) -> bytes | None:
        box = '{"box": {"x": [' + self._any_of(("0", "-1"), 0.8) + ", " + self._any_of(("1", "1e308"), 0.8) + "]}}"
        fields = {
            "kind": self._any_of(('"border"', '"match"', '"nothing"'), 0.9),
            "feed": self._any_of((json.dumps(feed),), 0.9),
            "region": self._any_of((box, box, '{"polygon": {"x": 1}}'), 0.9),
        }
        if self._random.random() < 0.3:
            fields["tags"] = self._any_of(('{"a": "b"}', '{"a": "\\u0000"}', json.dumps({"a": "b" * 20_000})), 0.7)
        return self._spoilt(fields)

    def _mark(self, feed: str) -> bytes | None:
        event_time = self._any_of(("0", "-1", "1.5", "253402300799999"), 0.5)
        return self._spoilt({"feed": self._any_of((json.dumps(feed),), 0.8), "event_time": event_time})

    def _any_of(self, right: Sequence[str], share: float) -> str:
        """Return one of ``right`` with probability ``share``, and otherwise any JSON value, or a text that is none."""
        if self._random.random() < share:
            return self._random.choice(right)
        return self._random.choice((*_NUMBERS, *_OTHERS))

    def _spoilt(self, fields: dict[str, str]) -> bytes | None:
        """Return the JSON object of ``fields``, or what became of it on its way."""
        draw = self._random
        names = list(fields) + [name for name in fields if draw.random() < 0.1]
        whole = ("{" + ", ".join(f'"{name}": {fields[name]}' for name in names) + "}").encode()
        match draw.randrange(12):
            case 0:
                return None
            case 1:
                return draw.choice(_JUNK)
            case 2:
                return whole[: draw.randrange(len(whole))]
            case 3:
                at = draw.randrange(len(whole))
                return whole[:at] + draw.choice(_JUNK) + whole[at:]
            case 4:
                return draw.randbytes(draw.choice((1, 100, 10_000)))
            case 5:
                return whole + b" " * draw.choice((1, 500_000, 900_000))
            case 6:
                return b"[" * 101 + b'\\"' * 50_000
        return whole
