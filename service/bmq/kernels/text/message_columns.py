"""Messages of a C library to columns: one call for thousands of messages instead of a Python object for each.

    addresses ─► describe ─► lengths, offsets, times, faults ─► copy ─► keys and values, one behind another ─► free

A message is a C struct at an address. The caller passes the addresses of the library's functions, too: an address that
is compiled in would be wrong in the next process, and numba could not keep the kernel. This module knows the layout of
the struct (`rd_kafka_message_t`, part of librdkafka's stable ABI), and no topics.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from bmq.records import Bytes, Int32s, Int64s

# Where the fields of the struct begin, in bytes; pointers and sizes have 8 bytes.
_FAULT, _VALUE, _VALUE_LENGTH, _KEY, _KEY_LENGTH, _OFFSET = 0, 24, 32, 40, 48, 56

NULL = -1  # the length of a key or value that is null; an empty one has the length 0

_POINTER = ir.IntType(8).as_pointer()


@njit(cache=True)
def describe_messages(
    messages: Int64s,
    time_of: int,
    faults: Int32s,
    offsets: Int64s,
    times: Int64s,
    key_lengths: Int64s,
    value_lengths: Int64s,
) -> None:
    """Write what each message has, except its bytes.

    Parameters
    ----------
    messages : int64[n]
        Addresses of messages that have not been freed.
    time_of : int
        The address of `rd_kafka_message_timestamp`.
    faults : int32[n], output
        The error code of a message that is no record, or 0.
    offsets, times : int64[n], output
        Times are epoch milliseconds, any 64-bit number.
    key_lengths, value_lengths : int64[n], output
        In bytes; NULL for a null. Meaningless for a message with a fault.

    Notes
    -----
    Raises nothing. A wrong address ends the process.
    """
    for i in range(messages.size):
        message = messages[i]
        faults[i] = np.int32(_load(message + _FAULT) & 0xFFFFFFFF)
        offsets[i] = _load(message + _OFFSET)
        times[i] = _call_with_message(time_of, message)
        key_lengths[i] = _load(message + _KEY_LENGTH) if _load(message + _KEY) != 0 else NULL
        value_lengths[i] = _load(message + _VALUE_LENGTH) if _load(message + _VALUE) != 0 else NULL


@njit(cache=True)
def copy_messages(messages: Int64s, key_starts: Int64s, keys: Bytes, value_starts: Int64s, values: Bytes) -> None:
    """Copy keys and values, each to its place.

    Parameters
    ----------
    messages : int64[n]
        Addresses of messages without a fault.
    key_starts, value_starts : int64[n + 1]
        Key i goes to ``keys[key_starts[i]:key_starts[i + 1]]``, of exactly its length.
    keys, values : uint8[], output

    Notes
    -----
    Raises nothing. The caller has the lengths from `describe_messages`.
    """
    for i in range(messages.size):
        message = messages[i]
        _copy(keys.ctypes.data + key_starts[i], _load(message + _KEY), key_starts[i + 1] - key_starts[i])
        _copy(values.ctypes.data + value_starts[i], _load(message + _VALUE), value_starts[i + 1] - value_starts[i])


@njit(cache=True)
def free_messages(messages: Int64s, destroy: int) -> None:
    """Free the messages at int64[n] addresses; ``destroy`` is the address of `rd_kafka_message_destroy`.

    Notes
    -----
    Raises nothing. Freeing a message twice ends the process.
    """
    for i in range(messages.size):
        _call_with_message(destroy, messages[i])


def _generate_load(typing_context: Any, address: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load(builder.inttoptr(arguments[0], ir.IntType(64).as_pointer()))

    return types.int64(types.int64), generate


def _generate_copy(typing_context: Any, target: Any, source: Any, n_bytes: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        to, from_ = (builder.inttoptr(address, _POINTER) for address in arguments[:2])
        cgutils.raw_memcpy(builder, to, from_, arguments[2], 1)  # type: ignore[no-untyped-call]
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


def _generate_call(typing_context: Any, function: Any, message: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        function_type = ir.FunctionType(ir.IntType(64), [_POINTER, _POINTER])
        function = builder.inttoptr(arguments[0], function_type.as_pointer())
        return builder.call(function, [builder.inttoptr(arguments[1], _POINTER), ir.Constant(_POINTER, None)])

    return types.int64(types.int64, types.int64), generate


# What Python has no words for: the int64 at an address; a copy of bytes to an address from another one; a call of the C
# function at an address with a message and a null pointer, which a function of one argument ignores.
_load: Any = intrinsic(_generate_load)
_copy: Any = intrinsic(_generate_copy)
_call_with_message: Any = intrinsic(_generate_call)
