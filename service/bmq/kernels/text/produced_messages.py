"""Columns to messages of a C library: one call for thousands of messages instead of a Python object for each.

The counterpart of `message_columns`. It knows the layout of the library's arguments (`rd_kafka_vu_t`, part of
librdkafka's stable ABI), and no topics.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from bmq.records import Bools, Bytes, Int32s, Int64s

# An argument: its kind, and a union of 64 bytes. The kinds are those of `rd_kafka_vtype_t`.
_ARGUMENT_WORDS = 9
_TOPIC, _VALUE, _KEY, _FLAGS, _HEADER = 2, 4, 5, 7, 9
_COPY = 2  # RD_KAFKA_MSG_F_COPY: the library copies key and value before the call returns
_N_FIXED = 4  # arguments beside the headers

_POINTER = ir.IntType(8).as_pointer()


@njit(cache=True, nogil=True)
def produce_messages(
    produce: int,
    client: int,
    start: int,
    topics: Int64s,
    keys: tuple[Bools, Int32s, Bytes],
    values: tuple[Bools, Int32s, Bytes],
    header_names: Int64s,
    headers: tuple[Int32s, Bytes],
) -> tuple[int, int]:
    """Hand messages ``[start, n)`` to a producer until it refuses one.

    Parameters
    ----------
    produce, client : int
        The addresses of `rd_kafka_produceva` and of the producer.
    topics : int64[n]
        Addresses of the topics' handles.
    keys, values : (bool[n], int32[n + 1], uint8[])
        Whether there is one; where each begins in the bytes, and the last one ends; the bytes.
    header_names : int64[h]
        Addresses of names that end with a zero byte; each message has all of them.
    headers : (int32[n * h + 1], uint8[])
        The values of the headers, message by message.

    Returns
    -------
    The first message that was not taken, or n, and the address of the error, or 0. The caller frees the error.

    Notes
    -----
    Raises nothing. A wrong address ends the process. Other Python threads run meanwhile. Cost: some 0.5 µs a message.
    """
    n, n_headers = topics.size, header_names.size
    has_key, key_starts, key_bytes = keys
    has_value, value_starts, value_bytes = values
    header_starts, header_bytes = headers
    arguments = np.zeros((_N_FIXED + n_headers, _ARGUMENT_WORDS), dtype=np.int64)
    arguments[:_N_FIXED, 0] = (_TOPIC, _FLAGS, _KEY, _VALUE)
    arguments[1, 1] = _COPY
    arguments[_N_FIXED:, 0] = _HEADER
    arguments[_N_FIXED:, 1] = header_names
    for i in range(start, n):
        arguments[0, 1] = topics[i]
        arguments[2, 1] = key_bytes.ctypes.data + key_starts[i] if has_key[i] else 0
        arguments[2, 2] = key_starts[i + 1] - key_starts[i]
        arguments[3, 1] = value_bytes.ctypes.data + value_starts[i] if has_value[i] else 0
        arguments[3, 2] = value_starts[i + 1] - value_starts[i]
        for j in range(n_headers):
            at = i * n_headers + j
            arguments[_N_FIXED + j, 2] = header_bytes.ctypes.data + header_starts[at]
            arguments[_N_FIXED + j, 3] = header_starts[at + 1] - header_starts[at]
        error = _call_produce(produce, client, arguments.ctypes.data, _N_FIXED + n_headers)
        if error != 0:
            return i, error
    return n, 0


def _generate_call(typing_context: Any, function: Any, client: Any, arguments: Any, n_arguments: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, parameters: Any) -> Any:
        function_type = ir.FunctionType(_POINTER, [_POINTER, _POINTER, ir.IntType(64)])
        function = builder.inttoptr(parameters[0], function_type.as_pointer())
        pointers = [builder.inttoptr(parameter, _POINTER) for parameter in parameters[1:3]]
        return builder.ptrtoint(builder.call(function, [*pointers, parameters[3]]), ir.IntType(64))

    return types.int64(types.int64, types.int64, types.int64, types.int64), generate


# What Python has no words for: a call of the C function at an address with two pointers and a number.
_call_produce: Any = intrinsic(_generate_call)
