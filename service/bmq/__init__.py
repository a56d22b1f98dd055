"""Standing queries over streams: one event when a stream enters or leaves a region, and nothing in between.

This package is a service for Kafka, and a library without it. The names of the library are below; each of them is
imported at its first use, so that ``import bmq`` costs nothing. docs/library.md describes them.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bmq.errors import ConfigError as ConfigError
    from bmq.errors import ControlError as ControlError
    from bmq.errors import ReadingError as ReadingError
    from bmq.errors import ServiceError as ServiceError
    from bmq.library.bare_indexes import BorderIndex as BorderIndex
    from bmq.library.bare_indexes import MatchIndex as MatchIndex
    from bmq.library.bare_indexes import Moves as Moves
    from bmq.library.bare_join import BandJoin as BandJoin
    from bmq.library.bare_join import BandPairs as BandPairs
    from bmq.library.bare_join import PairChanges as PairChanges
    from bmq.library.feeds import Feed as Feed
    from bmq.library.local_monitor import Counts as Counts
    from bmq.library.local_monitor import Monitor as Monitor

__all__ = [
    "BandJoin",
    "BandPairs",
    "BorderIndex",
    "ConfigError",
    "ControlError",
    "Counts",
    "Feed",
    "MatchIndex",
    "Monitor",
    "Moves",
    "PairChanges",
    "ReadingError",
    "ServiceError",
]

_MODULES = {
    "BandJoin": "bmq.library.bare_join",
    "BandPairs": "bmq.library.bare_join",
    "BorderIndex": "bmq.library.bare_indexes",
    "ConfigError": "bmq.errors",
    "ControlError": "bmq.errors",
    "Counts": "bmq.library.local_monitor",
    "Feed": "bmq.library.feeds",
    "MatchIndex": "bmq.library.bare_indexes",
    "Monitor": "bmq.library.local_monitor",
    "Moves": "bmq.library.bare_indexes",
    "PairChanges": "bmq.library.bare_join",
    "ReadingError": "bmq.errors",
    "ServiceError": "bmq.errors",
}


if not TYPE_CHECKING:  # or a type checker would believe in every name

    def __getattr__(name: str) -> Any:
        if name not in _MODULES:
            raise AttributeError(f"module 'bmq' has no attribute {name!r}. Its public names are {', '.join(__all__)}.")
        found = globals()[name] = getattr(importlib.import_module(_MODULES[name]), name)
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
