"""Fields of JSON records by path: "location.lat" is the member `lat` of the object `location`.

    {"location": {"lat": 2}}                        2
    {"location.lat": 1, "location": {"lat": 2}}     1: a member with the whole name comes first

The kernel for records knows the names of one level. So the objects that stand on paths are gathered and scanned like
records, a level at a time. That costs one more scan, and a copy of these objects, for each object on a path.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from bmq.records import Bools, Bytes, Int64s
from bmq.wire.scanned_fields import ScannedFields

_DOT = "."
_OPEN_OBJECT = ord("{")


def has_paths(fields: Sequence[str]) -> bool:
    """Return whether a name among ``fields`` is a path."""
    return any(_DOT in name for name in fields)


def with_paths(document: Mapping[str, object], fields: Sequence[str]) -> Mapping[str, object]:
    """Return the members of a document, and a member for each path among ``fields`` that leads to a value."""
    found = dict(document)
    for path in fields:
        if _DOT in path and path not in document:
            value = value_at(document, path.split(_DOT))
            if value is not None:
                found[path] = value
    return found


def value_at(document: Mapping[str, object], names: Sequence[str]) -> object:
    """Return the value to which names lead, each a member of the object before it; None: they lead nowhere."""
    value: object = document
    for name in names:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def encoded_names(names: Sequence[str]) -> tuple[Int64s, Bytes]:
    """Return (starts, bytes) of names, as `scan_json` needs them."""
    encoded = [name.encode() for name in names]
    return np.cumsum([0, *map(len, encoded)], dtype=np.int64), np.frombuffer(b"".join(encoded), np.uint8)


@dataclass(slots=True)
class _Level:
    """The names in one object: those of fields, and those of objects that have further names; a name may be both."""

    field_by_name: dict[str, int] = field(default_factory=dict)
    level_by_name: dict[str, "_Level"] = field(default_factory=dict)

    def add(self, path: Sequence[str], number: int) -> None:
        if len(path) == 1:
            self.field_by_name[path[0]] = number
        else:
            self.level_by_name.setdefault(path[0], _Level()).add(path[1:], number)

    def names(self) -> list[str]:
        """Return the names in the order of the rows of a scan: first those of fields."""
        return [*self.field_by_name, *(name for name in self.level_by_name if name not in self.field_by_name)]


@dataclass(frozen=True, slots=True)
class _Objects:
    """Objects that were scanned as records.

    Attributes
    ----------
    level : the names in the objects.
    fields : the scan over ``data``, a row for each name and a column for each object.
    records : int64[m], the record of the batch that each object is in.
    shifts : int64[m], what makes a position in ``data`` a position in the bytes of the batch.
    """

    level: _Level
    data: Bytes
    fields: ScannedFields
    records: Int64s
    shifts: Int64s


class PathScanner:
    """Scans batches of JSON records for fields some of which are paths.

    Parameters
    ----------
    fields : their names, all different.
    """

    def __init__(self, fields: Sequence[str]) -> None:
        self._top = _Level({name: number for number, name in enumerate(fields)})
        for number, name in enumerate(fields):
            if _DOT in name:
                self._top.add(name.split(_DOT), number)

    def scan(self, starts: Int64s, data: Bytes, filled: ScannedFields) -> Bools:
        """Return which records are well-formed, and fill the arrays for those, as `scan_json` does."""
        fields, well_formed = _scan_level(starts, data, self._top)
        for number in range(len(filled.kinds)):
            filled.kinds[number] = fields.kinds[number]
            filled.begins[number] = fields.begins[number]
            filled.ends[number] = fields.ends[number]
            filled.numbers[number] = fields.numbers[number]
        n = starts.size - 1
        records = _Objects(self._top, data, fields, np.arange(n), np.zeros(n, np.int64))
        _fill_inner(records, filled, well_formed)
        return well_formed


def _fill_inner(outer: _Objects, filled: ScannedFields, well_formed: Bools) -> None:
    """Fill the fields that are within members of ``outer``; clear ``well_formed`` if such a member is odd."""
    from bmq.kernels.text.json_skip import ABSENT, OTHER
    from bmq.kernels.text.plain_records import gather_texts

    names = outer.level.names()
    for name, level in outer.level.level_by_name.items():
        row = names.index(name)
        begins, ends = outer.fields.begins[row], outer.fields.ends[row]
        found = np.flatnonzero(well_formed[outer.records] & (outer.fields.kinds[row] == OTHER))
        found = found[outer.data[begins[found]] == _OPEN_OBJECT]
        if not found.size:
            continue
        starts, data = gather_texts(found, begins, ends, outer.data)
        data.flags.writeable = False  # numba compiles a kernel again for each mixture of both flags
        fields, good = _scan_level(starts, data, level)
        records = outer.records[found]
        shifts = outer.shifts[found] + begins[found] - starts[:-1]
        well_formed[records] &= good
        for inner_row, number in enumerate(level.field_by_name.values()):
            is_new = filled.kinds[number, records] == ABSENT
            to = records[is_new]
            filled.kinds[number, to] = fields.kinds[inner_row, is_new]
            filled.begins[number, to] = (fields.begins[inner_row] + shifts)[is_new]
            filled.ends[number, to] = (fields.ends[inner_row] + shifts)[is_new]
            filled.numbers[number, to] = fields.numbers[inner_row, is_new]
        _fill_inner(_Objects(level, data, fields, records, shifts), filled, well_formed)


def _scan_level(starts: Int64s, data: Bytes, level: _Level) -> tuple[ScannedFields, Bools]:
    # Imported here, because the CLI reads definitions through this module and must not pay for loading numba.
    from bmq.kernels.text.json_scan import scan_json

    names = level.names()
    fields = ScannedFields.empty(len(names), starts.size - 1)
    well_formed = scan_json(
        starts, data, *encoded_names(names), fields.kinds, fields.begins, fields.ends, fields.numbers
    )
    return fields, well_formed
