"""The options that every kind of definition has, as records: `where` and `expires_at`. Knows one feed."""

from collections.abc import Mapping

from bmq.errors import ControlCode, ControlError, ReadingError
from bmq.records import Feed, TimeUnit, Where
from bmq.wire.definition_models import Scalar
from bmq.wire.event_times import LEAST_MILLISECONDS, read_event_time
from bmq.wire.fault_texts import shorten, suggestion
from bmq.wire.numeral import Numeral
from bmq.wire.record_formats import RECORD_FORMATS


def read_where(wanted: Mapping[str, Scalar | list[Scalar]], feed: Feed) -> Where:
    """Return the accepted values of each attribute, sorted by name; values are canonical texts, each once.

    Raises
    ------
    ControlError
        `bad_option`: the feed declares no such attribute.
    """
    for name in wanted:
        if name not in feed.attributes:
            raise bad_option(
                f"Field 'where' names {shorten(name)}, but feed '{feed.name}' declares no such attribute. "
                f"{suggestion(name, feed.attributes)} If readings have it, add it to feeds.{feed.name}.attributes in "
                "the configuration."
            )
    return tuple((name, _texts(wanted[name], feed)) for name in sorted(wanted))


def _texts(values: Scalar | list[Scalar], feed: Feed) -> tuple[str, ...]:
    listed = values if isinstance(values, list) else [values]
    return tuple(sorted({RECORD_FORMATS[feed.format].where_text(value) for value in listed}))


def read_expires_at(time: float | str | None) -> int | None:
    """Return epoch milliseconds; None if the definition sets no `expires_at`.

    Raises
    ------
    ControlError
        `bad_option`: the value is not a time, or is a number that is probably in seconds.
    """
    if time is None:
        return None
    if not isinstance(time, str) and time < LEAST_MILLISECONDS:
        raise bad_option(
            f"Field 'expires_at' is {shorten(time)}: a number is epoch milliseconds, and one below 10^11 is probably "
            "seconds. Multiply it by 1000, or write a text like 2023-11-14T22:13:20Z."
        )
    try:
        return read_event_time("Field 'expires_at'", time if isinstance(time, str) else Numeral(time), TimeUnit.MS)
    except ReadingError as error:
        raise bad_option(f"{error}.") from None


def bad_option(message: str) -> ControlError:
    """Return the error for an option with a value that it does not allow."""
    return ControlError(ControlCode.BAD_OPTION, message)
