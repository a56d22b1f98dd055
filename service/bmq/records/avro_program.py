"""The program that reads one Avro record: what `wire.avro_schema` writes and `kernels.avro` runs.

Each step is a row (operation, a, b, field). The field is the row of the scan's arrays that gets the value; -1: none.
"""

from dataclasses import dataclass

from bmq.records.arrays import Int64s

NULL = 0
BOOLEAN = 1
VARINT = 2  # an int or a long
FLOAT = 3
DOUBLE = 4
STRING = 5
BYTES = 6
FIXED = 7  # a: how many bytes
ENUM = 8  # a: how many symbols; b: which list of symbols
UNION = 9  # a: how many branches; branch i goes on at step jumps[b + i]
JUMP = 10  # a: the step to go on at
BLOCK = 11  # the beginning of a block of an array or a map; a: the step behind its end; b: the slot of its counter
NEXT = 12  # the end of an item; a: the step of the BLOCK; b: the slot of its counter

NO_FIELD = -1


@dataclass(frozen=True, slots=True)
class AvroProgram:
    """A compiled schema.

    Attributes
    ----------
    steps : int64[m, 4], one of the operations above a row.
    jumps : int64[], the steps of the branches of unions.
    n_counters : how deep arrays and maps are nested, at least 1.
    symbols : the symbols of each enum.
    """

    steps: Int64s
    jumps: Int64s
    n_counters: int
    symbols: tuple[tuple[str, ...], ...]
