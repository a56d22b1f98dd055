"""The public `Feed`: what a table of readings consists of. Knows the options, and not the tables."""

from collections.abc import Sequence
from typing import Literal

from pydantic import ValidationError

from bmq import records
from bmq.config.faults import describe, unknown_option
from bmq.config.feed_section import FeedSection
from bmq.errors import ConfigError

# Options of the service's configuration that have no meaning for a table, each with what to do instead.
_OF_THE_SERVICE = {
    "topic": "a table comes from no topic: pass it to Monitor.advance",
    "topics": "a table comes from no topic: pass it to Monitor.advance",
    "topic_attribute": "a table comes from no topic: add a column to it",
    "constants": "add a column to the table",
    "readings": "a row is one reading: unnest the list before",
    "format": "a table has columns and no format: read the file with pyarrow, pandas or Polars",
    "schema_file": "a table has columns and no format: read the file with fastavro or Polars",
    "message": "a table has columns and no format",
    "idle_advance": "there is no wall time: pass `clocks` to Monitor.advance",
    "max_future": "a row has no timestamp of a record that it could be ahead of: filter the table",
}
_OPTIONS = ("stream_id", "event_time", "event_time_unit", "attributes", "space", "index", "max_lateness", "stream_ttl")


class Feed:
    """The columns of a table of readings, and the rules for them; as a feed of the service's configuration.

    Parameters
    ----------
    name : str
        The name that queries use.
    dimensions : sequence of str
        The columns that regions are about.
    stream_id : str
        The column that names the stream: text, or whole numbers, whose text is the id.
    event_time : str
        The column with the event time: timestamps, or whole numbers that count from 1970.
    event_time_unit : {"s", "ms", "us", "ns"}, optional
        The unit of an event time that is a number. None: milliseconds, and a number that is probably of another unit
        is refused.
    attributes : sequence of str
        Further columns, for `where` in a query and for what `select` and joins ask.
    space : {"plane", "lonlat"}
        `lonlat`: two dimensions in degrees, the longitude first; the radius of a circle is in metres.
    index : str
        What finds the crossings; no event depends on it.
    max_lateness : str
        By how much the readings of a stream may be out of order, such as "5s".
    stream_ttl : str, optional
        The silence after which a stream is unknown again, such as "10m". None: never.
    join : bool
        Whether `band_join` and `window_join` may use the feed.

    Raises
    ------
    ConfigError
        An option has a wrong value, or belongs to the service; the message names it.

    Examples
    --------
    >>> import bmq
    >>> bmq.Feed("vehicles", ["x", "y"], attributes=["colour"])
    Feed('vehicles', dimensions=['x', 'y'], stream_id='id', event_time='ts', attributes=['colour'])
    >>> bmq.Feed("stocks", ["price"], index="border_grid")
    Traceback (most recent call last):
    bmq.errors.ConfigError: Feed 'stocks': index = "border_grid" is not for 1 dimension; take one of "auto", ...
    """

    def __init__(
        self,
        name: str,
        dimensions: Sequence[str],
        *,
        stream_id: str = "id",
        event_time: str = "ts",
        event_time_unit: Literal["s", "ms", "us", "ns"] | None = None,
        attributes: Sequence[str] = (),
        space: Literal["plane", "lonlat"] = "plane",
        index: Literal["auto", "region_segments", "border_grid", "nd_bmq", "stab_difference", "scan"] = "auto",
        max_lateness: str = "0s",
        stream_ttl: str | None = None,
        join: bool = False,
        **others: object,
    ) -> None:
        _refuse_others(name, others)
        if event_time is None or stream_id == "@key":
            raise ConfigError(
                f"Feed {name!r}: event_time = {event_time!r} and stream_id = {stream_id!r}, but a row of a table has "
                "neither a timestamp nor a key of its own. Name a column for each."
            )
        options = {
            "stream_id": stream_id,
            "event_time": event_time,
            "event_time_unit": event_time_unit,
            "dimensions": _listed(dimensions),
            "attributes": _listed(attributes),
            "space": space,
            "index": index,
            "max_lateness": max_lateness,
            "stream_ttl": stream_ttl,
            "join": join,
        }
        try:
            section = FeedSection.model_validate({"topic": "none", "max_future": "off", **options})
        except ValidationError as error:
            faults = "; ".join(describe(fault, FeedSection).lstrip(" =:") for fault in error.errors())
            raise ConfigError(f"Feed {name!r}: {faults}.") from None
        self._options = options
        self._record = section.record(name)

    @property
    def name(self) -> str:
        """The name that queries use."""
        return self._record.name

    @property
    def dimensions(self) -> tuple[str, ...]:
        """The columns that regions are about."""
        return self._record.dimensions

    @property
    def record(self) -> records.Feed:
        """The feed as the engine knows it."""
        return self._record

    def __repr__(self) -> str:
        defaults = {"attributes": [], "space": "plane", "index": "auto", "max_lateness": "0s", "join": False}
        shown = {"dimensions": list(self.dimensions)} | {
            name: value for name, value in self._options.items() if value not in (None, defaults.get(name))
        }
        return f"Feed({self.name!r}, {', '.join(f'{name}={value!r}' for name, value in shown.items())})"


def _listed(names: Sequence[str]) -> object:
    # A text is a sequence of texts for Python, but one name is no list of names: the section refuses it.
    return names if isinstance(names, str) else list(names)


def _refuse_others(name: str, others: dict[str, object]) -> None:
    for option in others:
        if option in _OF_THE_SERVICE:
            raise ConfigError(
                f"Feed {name!r}: {option!r} is an option of the service, and the library does not have it, because "
                f"{_OF_THE_SERVICE[option]}."
            )
        known = ("dimensions", *_OPTIONS, "join")
        raise ConfigError(f"Feed {name!r}: {unknown_option((option,), known)}.")
