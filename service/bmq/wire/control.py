"""Control records to commands: the key is the query id, the value is its definition, and null deletes the query.

The checks run in this order, so a record with several faults gets the code of the first:

    1  key          missing_field (absent or empty), wrong_type (not UTF-8, or too long)
    2  JSON         not_json (not UTF-8, not a JSON object, NaN, or a name twice in one object)
    3  costs        over_limit (see `costs`)
    4  kind         missing_field, wrong_type, unknown_kind
    5  shape        wrong_type, unknown_field, bad_option, missing_field, bad_duration, bad_region (see `definitions`)
    6  together     bad_region (not exactly one shape), bad_option (options that exclude each other, a feed twice)
    7  tenant       forbidden (see `tenants`)
    8  feeds        unknown_feed, then unknown_dimension, then bad_region, then bad_option (see `region_queries`,
                    `select_queries` and `join_queries`)
    9  topic        bad_option
    10 tags         bad_option (too long)

Knows bytes and records. The monitor decides whether the query exists and whether a put changes it.
"""

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

from bmq.errors import ControlCode, ControlError
from bmq.records import Command, Delete, Feed, Installation, JoinQuery, Put, Refused, RegionQuery
from bmq.wire.costs import check_costs
from bmq.wire.definition_models import Definition
from bmq.wire.definitions import read_definition
from bmq.wire.fault_texts import shorten, suggestion
from bmq.wire.kinds import KINDS
from bmq.wire.record_texts import read_text
from bmq.wire.tenants import check_tenant

# Every event carries its query id in the value and in a header, and the state holds it too. 256 bytes hold a URL or
# two UUIDs; a higher limit lets one client inflate every event of its query.
QUERY_ID_LIMIT_BYTES = 256
LONGEST_INT = 300  # digits, and so many are too long; a float's range ends at 309


def parse_command(
    key: bytes | None,
    value: bytes | None,
    offset: int,
    installation: Installation,
) -> Command:
    """Return the command in a control record. Raises nothing: a bad record becomes a `Refused`.

    Parameters
    ----------
    offset : the record's offset; the version of a put is one more.
    """
    try:
        query_id = _read_query_id(key)
        if value is None:
            return Delete(offset, query_id)
        query = _read_query(query_id, value, offset + 1, installation)
    except ControlError as error:
        named = (key or b"")[:QUERY_ID_LIMIT_BYTES].decode(errors="replace")
        return Refused(offset, named, error.code.value, str(error))
    return Put(offset, query)


def validate_definition(
    query_id: str,
    definition: bytes | Mapping[str, Any],
    installation: Installation,
) -> RegionQuery | JoinQuery:
    """Return the query that ``definition`` would become, with version 0.

    Clients call it before they publish. In the compacted control topic a refused edit would replace the definition in
    force, and a service with a new checkpoint could not rebuild the query.

    Raises
    ------
    ControlError
        With the code that the service would reply.
    """
    read_id = _read_query_id(query_id.encode(errors="surrogatepass"))
    if not isinstance(definition, bytes):
        try:
            definition = json.dumps(definition).encode()
        except (TypeError, ValueError) as error:
            raise _not_json(str(error)) from None
    return _read_query(read_id, definition, 0, installation)


def _read_query_id(key: bytes | None) -> str:
    if not key:
        raise ControlError(
            ControlCode.MISSING_FIELD,
            "The record has no key, but the key is the query id. Publish it with a key.",
        )
    if len(key) > QUERY_ID_LIMIT_BYTES:
        raise ControlError(
            ControlCode.WRONG_TYPE,
            f"The query id has {len(key)} bytes, but at most {QUERY_ID_LIMIT_BYTES} are allowed. Shorten it.",
        )
    try:
        return key.decode()
    except UnicodeDecodeError as error:
        raise ControlError(
            ControlCode.WRONG_TYPE,
            f"The query id is no UTF-8 ({error.reason} at byte {error.start}). Publish the key as UTF-8.",
        ) from None


def _read_query(
    query_id: str,
    value: bytes,
    version: int,
    installation: Installation,
) -> RegionQuery | JoinQuery:
    try:
        read = _read_object(value)
        check_costs(read, installation.limits)
        definition = read_definition(read)
        check_tenant(query_id, definition, installation)
        named = [_find_feed(name, installation.feeds) for name in definition.feeds]
        tags = _CANONICAL.encode(definition.tags)
        query = KINDS[definition.kind].read(query_id, version, definition, tags, *named)
    except RecursionError:
        raise _not_json("it is nested too deeply") from None
    _check_output_topic(definition, installation)
    _check_tags(query.tags)
    return query


def _find_feed(name: str, feeds: Mapping[str, Feed]) -> Feed:
    if name in feeds:
        return feeds[name]
    raise ControlError(
        ControlCode.UNKNOWN_FEED,
        f"Feed {shorten(name)} is not configured. {suggestion(name, feeds)} A further feed is a table [feeds.…] in the "
        "configuration.",
    )


def _check_tags(tags: str) -> None:
    if len(tags) > LONGEST_TAGS:
        raise ControlError(
            ControlCode.BAD_OPTION,
            f"Field 'tags' has {len(tags)} characters, but every event carries it: {LONGEST_TAGS} are the most. "
            "Shorten it.",
        )


def _read_object(value: bytes) -> dict[str, Any]:
    """Return the JSON object in ``value``. Exact, not fast: 1e999 is valid JSON and must not become `not_json`."""
    try:
        text = read_text(value)
        read = _DECODER.decode(text)
        if "\\u" in text:
            json.dumps(read, ensure_ascii=False).encode()  # raises for half of a surrogate pair, which is not text
    except UnicodeError:
        raise _not_json("it holds half of a surrogate pair, which is no UTF-8 text") from None
    except ValueError as error:
        raise _not_json(str(error)) from None
    if not isinstance(read, dict):
        raise _not_json(f"{shorten(read)} is no object")
    return read


def _unique_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    read = dict(pairs)
    if len(read) < len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"the name {shorten(twice)} stands twice in one object")
    return read


def _read_int(digits: str) -> int | float:
    # A longer number is read as a float, infinite if it is beyond a float's range: Python refuses to make an int of
    # 4,301 digits, and a border is a float in any case.
    return int(digits) if len(digits) < LONGEST_INT else float(digits)


def _refuse_constant(constant: str) -> float:
    raise ValueError(f"{constant} is no JSON number")


# Made once: with options, json.loads and json.dumps make a new decoder or encoder at each call, which doubles the
# time of a command.
_DECODER = json.JSONDecoder(object_pairs_hook=_unique_names, parse_int=_read_int, parse_constant=_refuse_constant)
LONGEST_TAGS = 16_384  # characters; by default a Kafka topic accepts records of up to 1 MiB
_CANONICAL = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def _not_json(fault: str) -> ControlError:
    return ControlError(
        ControlCode.NOT_JSON,
        f"The definition is no JSON object: {fault}. Publish a JSON object, or null to delete the query.",
    )


def _check_output_topic(definition: Definition, installation: Installation) -> None:
    topic = definition.output_topic
    if topic is None:
        return
    prefix = installation.output_prefix
    if not topic.startswith(prefix) or topic.startswith("__") or topic in (".", ".."):
        raise ControlError(
            ControlCode.BAD_OPTION,
            f"Field 'output_topic' is '{topic}', but must begin with '{prefix}'. Choose such a name.",
        )
    # The service would read events on its own input topics back as commands or readings. Kafka treats "." and "_" as
    # equal in metric names, and refuses to create a topic whose name differs from another only in them.
    taken = [*installation.reserved_topics, *(topic for feed in installation.feeds.values() for topic in feed.topics)]
    if topic.replace("_", ".") in (other.replace("_", ".") for other in taken):
        raise ControlError(
            ControlCode.BAD_OPTION,
            f"Field 'output_topic' is '{topic}', which the service itself uses. Choose another.",
        )
