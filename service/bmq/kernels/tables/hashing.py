"""Hashes of stream ids, read directly from Arrow's buffers. Pure: arrays in, numbers out.

Knows bytes only. It must not know streams, tables or how many shards a feed has.
"""

import numpy as np
from numba import njit, uint64

from bmq.records import Bytes, Int32s, Int64s, UInt64s

# The 64-bit finalizer of MurmurHash3 (public domain) and the FNV-1a prime. Checkpoints depend on both, because the
# shard of a stream follows from its hash: a change of one of them is a change of the state format.
_FNV_BASIS = np.uint64(0xCBF29CE484222325)
_FNV_PRIME = np.uint64(0x100000001B3)
_MIX_1 = np.uint64(0xFF51AFD7ED558CCD)
_MIX_2 = np.uint64(0xC4CEB9FE1A85EC53)
_SHIFT = np.uint64(33)


@njit(cache=True, inline="always")
def mix(h: np.uint64) -> np.uint64:
    """Return ``h`` with every input bit spread over all 64 output bits."""
    h ^= h >> _SHIFT
    h *= _MIX_1
    h ^= h >> _SHIFT
    h *= _MIX_2
    h ^= h >> _SHIFT
    return h


@njit(cache=True)
def hash_ids(starts: Int64s, data: Bytes) -> UInt64s:
    """Return a stable 64-bit hash of each id.

    Parameters
    ----------
    starts : int64[n + 1]
        Id i is ``data[starts[i]:starts[i + 1]]``.
    data : uint8[]

    Returns
    -------
    uint64[n]
        FNV-1a, then MurmurHash3's finalizer: FNV alone leaves the high bits of short ids nearly equal, and the shard is
        taken from the high bits. The hash is not secure: a person who chooses ids can make two that collide. A
        collision makes a look-up longer and never changes an answer, because tables compare the id itself.

    Notes
    -----
    Raises nothing. One multiplication a byte.
    """
    n = starts.size - 1
    hashes = np.empty(n, dtype=np.uint64)
    for i in range(n):
        h = _FNV_BASIS
        for j in range(starts[i], starts[i + 1]):
            h = (h ^ uint64(data[j])) * _FNV_PRIME
        hashes[i] = mix(h)
    return hashes


@njit(cache=True)
def shards_of(hashes: UInt64s, n_shards: int) -> Int32s:
    """Return the shard of each hash, int32[n] of 0..n_shards - 1, from its high 32 bits (tables use the low ones)."""
    shards = np.empty(hashes.size, dtype=np.int32)
    for i in range(hashes.size):
        shards[i] = np.int32(((hashes[i] >> np.uint64(32)) * np.uint64(n_shards)) >> np.uint64(32))
    return shards
