"""128-bit event ids, for a whole column of events at a time. Pure: arrays in, arrays out.

    event id = M(M(scope) ‖ M(stream id) ‖ event time ‖ detail), as 32 hexadecimal digits

M is MurmurHash3_x64_128 with seed 0. Words are little-endian. M's two words are printed one after the other.
`wire.event_messages` defines what scope and detail are; this module must not know it.

The formula must never change. Consumers drop repeated events by event id. After a restart the service emits the events
of the last batch again, and with another formula consumers would count those events twice.
"""

import numpy as np
import numpy.typing as npt
from numba import njit, uint64

from bmq.kernels.tables.hashing import mix
from bmq.records import Bytes, Int32s, Int64s

Words = npt.NDArray[np.uint64]  # uint64[n, 2], one 128-bit hash a row

_C1 = np.uint64(0x87C37B91114253D5)
_C2 = np.uint64(0x4CF5AD432745937F)
_ADD_1 = np.uint64(0x52DCE729)
_ADD_2 = np.uint64(0x38495AB5)
_FIVE = np.uint64(5)
_EVENT_BYTES = np.uint64(48)  # three blocks of 16: scope, stream, (event time, detail)
_HEX = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)
ID_LENGTH = 32


@njit(cache=True, inline="always")
def _rotate(word: np.uint64, bits: int) -> np.uint64:
    """Return ``word`` rotated to the left by ``bits``."""
    return (word << np.uint64(bits)) | (word >> np.uint64(64 - bits))


@njit(cache=True, inline="always")
def _add_block(h1: np.uint64, h2: np.uint64, k1: np.uint64, k2: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Return the state (h1, h2) after one block of two words (k1, k2)."""
    h1 ^= _rotate(k1 * _C1, 31) * _C2
    h1 = (_rotate(h1, 27) + h2) * _FIVE + _ADD_1
    h2 ^= _rotate(k2 * _C2, 33) * _C1
    h2 = (_rotate(h2, 31) + h1) * _FIVE + _ADD_2
    return h1, h2


@njit(cache=True, inline="always")
def _finish(h1: np.uint64, h2: np.uint64, length: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Return the hash, given the state after the last block and the length of the text in bytes."""
    h1 ^= length
    h2 ^= length
    h1 += h2
    h2 += h1
    h1 = mix(h1)
    h2 = mix(h2)
    h1 += h2
    h2 += h1
    return h1, h2


@njit(cache=True)
def _little_endian(data: Bytes, start: int, stop: int) -> np.uint64:
    """Return the bytes ``data[start:stop]``, at most 8, as a little-endian number."""
    word = uint64(0)
    for i in range(start, stop):
        word |= uint64(data[i]) << np.uint64(8 * (i - start))
    return word


@njit(cache=True)
def hash_128(starts: Int64s, data: Bytes) -> Words:
    """Return MurmurHash3_x64_128 of each text, seed 0.

    Parameters
    ----------
    starts : int64[n + 1]
        Text i is ``data[starts[i]:starts[i + 1]]``.
    data : uint8[]

    Returns
    -------
    uint64[n, 2]

    Notes
    -----
    Raises nothing. The text is read byte by byte, so that every machine gives the same hash.
    Source: Austin Appleby, MurmurHash3.cpp (public domain).
    """
    n = starts.size - 1
    words = np.empty((n, 2), dtype=np.uint64)
    for i in range(n):
        h1 = uint64(0)
        h2 = uint64(0)
        at = starts[i]
        stop = starts[i + 1]
        while stop - at >= 16:
            h1, h2 = _add_block(h1, h2, _little_endian(data, at, at + 8), _little_endian(data, at + 8, at + 16))
            at += 16
        # The tail is a block padded with zeros, without the rotation that follows a full block.
        k1 = _little_endian(data, at, min(at + 8, stop))
        k2 = _little_endian(data, min(at + 8, stop), stop)
        h2 ^= _rotate(k2 * _C2, 33) * _C1
        h1 ^= _rotate(k1 * _C1, 31) * _C2
        words[i, 0], words[i, 1] = _finish(h1, h2, uint64(stop - starts[i]))
    return words


@njit(cache=True)
def event_ids(scopes: Words, scope_rows: Int32s, streams: Words, event_times: Int64s, details: Int64s) -> Bytes:
    """Return the event ids as text, 32 bytes an event and nothing between.

    Parameters
    ----------
    scopes : uint64[m, 2]
        Hashes of all that the event is about, apart from the stream.
    scope_rows : int32[n], 0..m - 1
        Which scope each event has.
    streams : uint64[n, 2]
        Hashes of the stream ids.
    event_times : int64[n], epoch ms
    details : int64[n]
        The numbers that differ between events of one scope, stream and event time.

    Returns
    -------
    uint8[32 * n]

    Notes
    -----
    Raises nothing; the caller guarantees that ``scope_rows`` are in range.
    """
    n = scope_rows.size
    text = np.empty(n * ID_LENGTH, dtype=np.uint8)
    for i in range(n):
        scope = scope_rows[i]
        h1, h2 = _add_block(uint64(0), uint64(0), scopes[scope, 0], scopes[scope, 1])
        h1, h2 = _add_block(h1, h2, streams[i, 0], streams[i, 1])
        h1, h2 = _add_block(h1, h2, uint64(event_times[i]), uint64(details[i]))
        h1, h2 = _finish(h1, h2, _EVENT_BYTES)
        for digit in range(16):
            shift = np.uint64(60 - 4 * digit)
            text[i * ID_LENGTH + digit] = _HEX[(h1 >> shift) & np.uint64(15)]
            text[i * ID_LENGTH + 16 + digit] = _HEX[(h2 >> shift) & np.uint64(15)]
    return text
