"""Words of 64 bits as sets of 64 things: how many, which, and rows made columns. Pure: numbers in, numbers out."""

import numpy as np
from numba import njit

from bmq.records import Bytes, Int32s, UInt64s

WORD = 64
AT_ONCE = 6  # members written at once; with 4 or 8 a tenth slower where a tenth of the bits is set

_ONE = np.uint64(1)
_PAIRS, _FOURS, _EIGHTS = np.uint64(0x5555555555555555), np.uint64(0x3333333333333333), np.uint64(0x0F0F0F0F0F0F0F0F)
_BYTES = np.uint64(0x0101010101010101)
_GATHER = np.uint64(0x0102040810204080)
# Halves of ever smaller squares: those bits of a row that change places with the row so many below.
_MASKS = np.array(
    [
        0x00000000FFFFFFFF,
        0x0000FFFF0000FFFF,
        0x00FF00FF00FF00FF,
        0x0F0F0F0F0F0F0F0F,
        0x3333333333333333,
        0x5555555555555555,
    ],
    dtype=np.uint64,
)


@njit(cache=True, inline="always")
def count_bits(word: np.uint64) -> np.uint64:
    """Return how many bits are set. The compiler knows the pattern: one instruction, where the processor has it."""
    word = word - ((word >> _ONE) & _PAIRS)
    word = (word & _FOURS) + ((word >> np.uint64(2)) & _FOURS)
    word = (word + (word >> np.uint64(4))) & _EIGHTS
    return (word * _BYTES) >> np.uint64(56)


@njit(cache=True, inline="always")
def lowest_bit(word: np.uint64) -> np.uint64:
    """Return the number of the lowest bit that is set; 64: none."""
    return count_bits(~word & (word - _ONE))


@njit(cache=True, inline="always")
def pack_bits(flags: Bytes) -> np.uint64:
    """Return the word whose bit b is ``flags[b]`` (uint8[64], each 0 or 1)."""
    word = np.uint64(0)
    eights = flags.view(np.uint64)
    for e in range(8):
        # The product has the lowest bits of all eight bytes side by side in its highest byte.
        word |= ((eights[e] * _GATHER) >> np.uint64(56)) << np.uint64(8 * e)
    return word


@njit(cache=True, inline="always")
def transpose(square: UInt64s) -> None:
    """Make bit j of word i of ``square`` (uint64[64]) bit i of word j, in place. Raises nothing.

    Source: Warren, *Hacker's Delight*, section 7-3.
    """
    side = 32
    for step in range(6):
        mask, shift = _MASKS[step], np.uint64(side)
        for first in range(0, WORD, 2 * side):
            for i in range(first, first + side):
                changed = ((square[i] >> shift) ^ square[i + side]) & mask
                square[i + side] ^= changed
                square[i] ^= changed << shift
        side >>= 1


@njit(cache=True, inline="always")
def write_members(word: np.uint64, members: Int32s, first: int, out: Int32s, n_out: int, n_room: int) -> int:
    """Write ``members[first + b]`` for each bit b of ``word`` behind ``out[:n_out]``; return how much is used then.

    ``members`` has 64 entries behind ``first`` and one more; ``out`` has ``n_room`` in all. Raises nothing.
    """
    n_bits = int(count_bits(word))
    # Unsigned: numba then need not ask whether an index counts from the end.
    at, base = np.uint64(n_out), np.uint64(first)
    # Several at a time, whether there are so many or not: a branch a bit would be guessed wrong at each word's end.
    if n_out + n_bits + AT_ONCE <= n_room:
        while word:
            for _ in range(AT_ONCE):
                out[at] = members[base + lowest_bit(word)]
                word &= word - _ONE
                at += _ONE
        return n_out + n_bits
    while word:
        out[at] = members[base + lowest_bit(word)]
        word &= word - _ONE
        at += _ONE
    return n_out + n_bits
