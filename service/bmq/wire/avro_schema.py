"""Compiles an Avro schema to the program that reads its records. Knows the Avro specification, not the record bytes.

    {"type": "record", "fields": [{"name": "id", "type": "string"}, …]} ─► STRING field 3, …

A field within a record is named by its path, "location.lat". Names of Avro contain no dots, so a path is never
ambiguous.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from bmq.records import Feed, TimeUnit
from bmq.records import avro_program as ops
from bmq.records.avro_program import NO_FIELD, AvroProgram
from bmq.wire.fault_texts import suggestion
from bmq.wire.feed_fields import KEY, scanned_fields

_PRIMITIVES = {
    "null": ops.NULL,
    "boolean": ops.BOOLEAN,
    "int": ops.VARINT,
    "long": ops.VARINT,
    "float": ops.FLOAT,
    "double": ops.DOUBLE,
    "bytes": ops.BYTES,
    "string": ops.STRING,
}
_NUMBERS = frozenset({"int", "long", "float", "double"})
_TEXTS = frozenset({"string", "enum"})
_UNITS = {
    "timestamp-millis": TimeUnit.MS,
    "timestamp-micros": TimeUnit.US,
    "timestamp-nanos": TimeUnit.NS,
}
_MOST_STEPS = 10_000  # a schema that names a large record in many places is written out at each place
_DEEPEST = 50
# A task decodes each range of offsets with a new decoder, and a schema of a hundred fields takes a millisecond.
_CACHED_PROGRAMS = 256


@lru_cache(_CACHED_PROGRAMS)
def compile_feed(feed: Feed) -> AvroProgram:
    """Return the program for the records of a feed; the same one for the same feed, which nobody may change.

    Raises
    ------
    ValueError
        The schema is not Avro, or lacks a field of the feed, or the field has a type that the feed cannot use. With a
        registry it may lack attributes: they are absent in records of a schema that is older than they are.
    """
    compiler = _compile(feed.schema, scanned_fields(feed))
    for names, usable, purpose in (
        (feed.dimensions, _NUMBERS, "a dimension is an int, long, float or double"),
        ([feed.event_time] if feed.event_time else [], _NUMBERS | {"string"}, "an event time is a number or a string"),
        (
            [] if feed.stream_id == KEY else [feed.stream_id],
            _NUMBERS | _TEXTS,
            "a stream id is a string, an enum or a number",
        ),
        (feed.attributes, _NUMBERS | _TEXTS | {"boolean"}, "an attribute is a string, an enum, a number or a boolean"),
    ):
        for name in names:
            if feed.registry and names is feed.attributes and not compiler.has(name):
                continue
            found = compiler.types_of(name)
            if not found & usable or found - usable - {"null"}:
                raise ValueError(f"the schema says that {name} is {', '.join(sorted(found))}; {purpose}, or also null")
    return compiler.program()


@lru_cache(_CACHED_PROGRAMS)
def unit_of_time(schema: str, event_time: str, configured: TimeUnit | None) -> TimeUnit | None:
    """Return the unit of the event time by its logical type; if it has none, the one that the feed is configured with.

    Raises
    ------
    ValueError
        The schema is not Avro, or the event time has a logical type that is no point in time, or that is in conflict
        with the configured unit.
    """
    types = _compile(schema, (event_time,)).logical_types(event_time)
    unknown = sorted(types - _UNITS.keys())
    if unknown or len(types) > 1:
        raise ValueError(
            f"the schema says that {event_time} is {', '.join(sorted(types))}; an event time has one of the logical "
            f"types {', '.join(_UNITS)}, or none"
        )
    unit = _UNITS[next(iter(types))] if types else configured
    if configured is not None and unit is not configured:
        raise ValueError(f'{event_time} is in {unit} there, but event_time_unit = "{configured}"; leave that out')
    return unit


def _compile(schema: str, fields: Sequence[str]) -> "_Compiler":
    try:
        root = json.loads(schema)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the schema is no JSON: {error}") from None
    compiler = _Compiler(fields)
    if not isinstance(root, dict) or root.get("type") != "record":
        raise ValueError("the schema is no record; a reading needs fields")
    try:
        compiler.add(root, "", "", _Place(()))
    except RecursionError:  # unions within unions, which Avro does not have, count as no level
        raise ValueError(f"the schema is nested more than {_DEEPEST} deep") from None
    return compiler


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a type stands: the records that it is in, and how many arrays and maps are around it."""

    records: tuple[str, ...]
    n_loops: int = 0


class _Compiler:
    """Adds steps for one type after the other; types and logical types of the wanted fields are noted on the way."""

    def __init__(self, fields: Sequence[str]) -> None:
        self._fields = {name: i for i, name in enumerate(fields)}
        self._steps: list[list[int]] = []
        self._jumps: list[int] = []
        self._symbols: list[tuple[str, ...]] = []
        self._named: dict[str, tuple[Mapping[str, Any], str]] = {}
        self._types: dict[str, set[str]] = {}
        self._logical: dict[str, set[str]] = {}
        self._paths: set[str] = set()
        self._n_counters = 1

    def program(self) -> AvroProgram:
        return AvroProgram(
            np.array(self._steps, np.int64).reshape(-1, 4),
            np.array(self._jumps or [0], np.int64),
            self._n_counters,
            tuple(self._symbols),
        )

    def has(self, name: str) -> bool:
        return name in self._types

    def types_of(self, name: str) -> set[str]:
        if name not in self._types:
            raise ValueError(f"the schema has no field {name}. {suggestion(name, self._paths)}")
        return self._types[name]

    def logical_types(self, name: str) -> set[str]:
        self.types_of(name)
        return self._logical.get(name, set())

    def add(self, schema: Any, path: str, namespace: str, place: _Place) -> None:
        """Add the steps for a type; ``path`` is "" where no field can be wanted."""
        if len(self._steps) > _MOST_STEPS or len(place.records) > _DEEPEST or place.n_loops > _DEEPEST:
            raise ValueError(f"the schema is too large: over {_MOST_STEPS} types, or nested more than {_DEEPEST} deep")
        if isinstance(schema, list):
            self._add_union(schema, path, namespace, place)
        elif isinstance(schema, str):
            if schema in _PRIMITIVES:
                self._note(path, schema)
                self._emit(_PRIMITIVES[schema], field=self._fields.get(path, NO_FIELD))
            else:
                self._add_named(*self._look_up(schema, namespace), path, place)
        elif isinstance(schema, dict):
            self._add_object(schema, path, namespace, place)
        else:
            raise ValueError(f"the schema has {json.dumps(schema)} in place of a type")

    def _add_object(self, schema: Mapping[str, Any], path: str, namespace: str, place: _Place) -> None:
        kind = schema.get("type")
        if kind in ("record", "enum", "fixed"):
            full = _full_name(schema, namespace)
            if self._named.setdefault(full, (schema, full))[0] is not schema:
                raise ValueError(f"the schema defines {full} twice")
            self._add_named(schema, full, path, place)
        elif kind in ("array", "map"):
            self._note(path, kind)
            self._add_loop(kind, schema.get("items" if kind == "array" else "values"), namespace, place)
        else:
            if path and "logicalType" in schema and kind in _NUMBERS:
                self._logical.setdefault(path, set()).add(str(schema["logicalType"]))
            self.add(kind, path, namespace, place)

    def _add_named(self, schema: Mapping[str, Any], full: str, path: str, place: _Place) -> None:
        kind = schema["type"]
        if kind == "record":
            if full in place.records:
                raise ValueError(f"the schema is recursive: {full} is within itself; readings are flat or nested")
            self._note(path, "record")
            inner = _Place((*place.records, full), place.n_loops)
            for field in _list(schema, "fields", full):
                if not isinstance(field.get("name"), str) or "type" not in field:
                    raise ValueError(f"the schema's {full} has a field without name or type: {json.dumps(field)}")
                name, within = field["name"], path or not place.records
                self.add(
                    field["type"],
                    (f"{path}.{name}" if path else name) if within else "",
                    full.rpartition(".")[0],
                    inner,
                )
            return
        self._note(path, kind)
        wanted = self._fields.get(path, NO_FIELD)
        if kind == "enum":
            symbols = tuple(_list(schema, "symbols", full))
            self._emit(ops.ENUM, len(symbols), len(self._symbols), wanted)
            self._symbols.append(symbols)
        else:
            self._emit(ops.FIXED, _size(schema, full), 0, wanted)

    def _add_union(self, branches: list[Any], path: str, namespace: str, place: _Place) -> None:
        first = len(self._jumps)
        self._emit(ops.UNION, len(branches), first)
        self._jumps += [0] * len(branches)
        ends = []
        for i, branch in enumerate(branches):
            self._jumps[first + i] = len(self._steps)
            self.add(branch, path, namespace, place)
            ends.append(self._emit(ops.JUMP))
        for end in ends:
            self._steps[end][1] = len(self._steps)

    def _add_loop(self, kind: str, items: Any, namespace: str, place: _Place) -> None:
        slot = place.n_loops
        self._n_counters = max(self._n_counters, slot + 1)
        block = self._emit(ops.BLOCK, 0, slot)
        if kind == "map":
            self._emit(ops.STRING)
        # A record in a list has its own records around it: paths do not lead into lists.
        self.add(items, "", namespace, _Place((*place.records, ""), slot + 1))
        # A reader would turn as often as the record asks for, without an end of the bytes to stop at.
        if not any(step[1] if step[0] == ops.FIXED else step[0] != ops.NULL for step in self._steps[block + 1 :]):
            raise ValueError("the schema has an array whose items have no bytes; leave the array out")
        self._emit(ops.NEXT, block, slot)
        self._steps[block][1] = len(self._steps)

    def _look_up(self, name: str, namespace: str) -> tuple[Mapping[str, Any], str]:
        full = name if "." in name or not namespace else f"{namespace}.{name}"
        found = self._named.get(full) or self._named.get(name)
        if found is None:
            raise ValueError(f"the schema names the type {name} but does not define it before")
        return found

    def _note(self, path: str, kind: str) -> None:
        if path:
            self._paths.add(path)
            self._types.setdefault(path, set()).add(kind)

    def _emit(self, operation: int, a: int = 0, b: int = 0, field: int = NO_FIELD) -> int:
        self._steps.append([operation, a, b, field])
        return len(self._steps) - 1


def _full_name(schema: Mapping[str, Any], namespace: str) -> str:
    name = schema.get("name")
    if not isinstance(name, str) or not name:
        raise ValueError(f"the schema has a type {schema.get('type')} without a name")
    namespace = schema.get("namespace", namespace)
    return name if "." in name or not namespace else f"{namespace}.{name}"


def _list(schema: Mapping[str, Any], key: str, name: str) -> list[Any]:
    found = schema.get(key)
    kind = dict if key == "fields" else str
    if not isinstance(found, list) or not all(isinstance(one, kind) for one in found):
        raise ValueError(f"the schema's {name} has no list of {key}")
    return found


def _size(schema: Mapping[str, Any], name: str) -> int:
    size = schema.get("size")
    if not isinstance(size, int) or isinstance(size, bool) or size < 0:
        raise ValueError(f"the schema's {name} has no size; write a whole number of bytes")
    return size
