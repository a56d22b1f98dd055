"""Words of 64 bits as sets of 64 things: counts members, lists them, turns rows into columns. Numbers in and out.

Pure. Knows bits only; it must not know what a member stands for.
"""

import numpy as np
from numba import njit

from bmq.records import Bytes, Int32s, UInt64s

WORD = 64
AT_ONCE = 6  # members written in one round; where a tenth of the bits is set, 4 and 8 took a tenth longer

_ONE = np.uint64(1)
_PAIRS, _FOURS, _EIGHTS = np.uint64(0x5555555555555555), np.uint64(0x3333333333333333), np.uint64(0x0F0F0F0F0F0F0F0F)
_BYTES = np.uint64(0x0101010101010101)
_GATHER = np.uint64(0x0102040810204080)
# Masks for ever smaller squares of a bit matrix, 32 to 1 bits wide: the bits of a row that change places with bits of
# the row below it at that distance.
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
    """Return how many bits of ``word`` are set.

    The compiler recognises the pattern and uses one instruction if the processor has it.
    """
    word = word - ((word >> _ONE) & _PAIRS)
    word = (word & _FOURS) + ((word >> np.uint64(2)) & _FOURS)
    word = (word + (word >> np.uint64(4))) & _EIGHTS
    return (word * _BYTES) >> np.uint64(56)


@njit(cache=True, inline="always")
def lowest_bit(word: np.uint64) -> np.uint64:
    """Return the number of the lowest bit that is set, or 64 if none is."""
    return count_bits(~word & (word - _ONE))


@njit(cache=True, inline="always")
def pack_bits(flags: Bytes) -> np.uint64:
    """Return the word whose bit b is ``flags[b]``; ``flags`` is uint8[64], each 0 or 1."""
    word = np.uint64(0)
    eights = flags.view(np.uint64)
    for e in range(8):
        # The product has the lowest bits of all eight bytes side by side in its highest byte.
        word |= ((eights[e] * _GATHER) >> np.uint64(56)) << np.uint64(8 * e)
    return word


@njit(cache=True, inline="always")
def transpose(square: UInt64s) -> None:
    """Swap rows and columns of ``square`` (uint64[64]) in place: bit j of word i becomes bit i of word j.

    Raises nothing. Source: Warren, *Hacker's Delight*, section 7-3.
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
    """Write ``members[first + b]`` for each set bit b of ``word`` behind the ``n_out`` first entries of ``out``.

    Parameters
    ----------
    word : uint64
    members : int32[]
        At least 65 entries from ``first`` on: the last one is read for a word that has become empty.
    first : int
    out : int32[n_room]
        Written. There must be room for all set bits.
    n_out, n_room : int

    Returns
    -------
    int
        How many entries of ``out`` are used afterwards. Entries behind them may have been overwritten.

    Notes
    -----
    Raises nothing.
    """
    n_bits = int(count_bits(word))
    # Unsigned: numba then need not check whether an index counts from the end.
    at, base = np.uint64(n_out), np.uint64(first)
    # Six at a time, even if fewer are left: the processor would guess a branch for each bit wrong at the end of each
    # word.
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
