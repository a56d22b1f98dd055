"""The C library inside confluent-kafka: its functions by ctypes, and its consumer, one for each process.

confluent-kafka makes a Python object of each record, which costs more than everything else that the service does with
it. The library in its wheel exports its C API, so this module calls that API, and kernels move records by the thousand.

Knows C types and the rules for client options, but not what is read or written.
"""

import atexit
import ctypes
import ctypes.util
from collections.abc import Mapping
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import confluent_kafka

from bmq.errors import SetupError
from bmq.kafka_io.connect import ISOLATION, ISOLATION_OPTION

# The name of the library's file beside the Python package, by the tool that put it into the wheel (Linux, macOS).
_IN_WHEEL = ("confluent_kafka.libs/librdkafka*.so*", "confluent_kafka/.dylibs/librdkafka*.dylib")
PRODUCER, CONSUMER = 0, 1  # rd_kafka_type_t
_NO_WAIT = 0x8  # RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE
_LONGEST_FAULT = 512  # bytes of a text that the library writes

# `void dr_msg_cb(rd_kafka_t *, const rd_kafka_message_t *, void *)`
Delivery: Any = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)

_FIXED_OPTIONS = {
    "enable.auto.commit": "false",
    # A range of offsets may end with gaps; then only the end of the partition shows that no record of it will come.
    "enable.partition.eof": "true",
    # An offset that is gone is a loss, and the service decides what follows.
    "auto.offset.reset": "error",
}
_DEFAULT_OPTIONS = {
    ISOLATION_OPTION: ISOLATION,
    # The broker answers at once if it has any record, and after this time with none. The library asks again as soon as
    # it has read a range to its end, and the fetch of the next partition waits behind that question.
    "fetch.wait.max.ms": "2",
    # How much is read ahead while a task decodes. A task drops what it read beyond its range, so more is a waste.
    "queued.min.messages": "50000",
    "queued.max.messages.kbytes": "32768",
    # How long the library rests when it has read that far ahead. With its own default, a second, a task that decodes
    # faster than 50,000 records a second waits most of the time.
    "fetch.queue.backoff.ms": "1",
}


class Library:
    """The functions of librdkafka that the service needs.

    Attributes
    ----------
    time_of, destroy_message, produce : the addresses of functions that kernels call.
    """

    def __init__(self, path: str) -> None:
        library = ctypes.CDLL(path)
        pointer, text, number = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int
        partition, offset, size = ctypes.c_int32, ctypes.c_int64, ctypes.c_size_t
        offsets = ctypes.POINTER(ctypes.c_int64)

        def function(name: str, result: Any, *arguments: Any) -> Any:
            found = getattr(library, f"rd_kafka_{name}")
            found.restype, found.argtypes = result, list(arguments)
            return found

        self.conf_new = function("conf_new", pointer)
        self.conf_destroy = function("conf_destroy", None, pointer)
        self.conf_set = function("conf_set", number, pointer, text, text, text, size)
        self.conf_set_log = function("conf_set_log_cb", None, pointer, pointer)
        self.new = function("new", pointer, number, pointer, text, size)
        self.destroy = function("destroy_flags", None, pointer, number)
        self.poll = function("poll", number, pointer, number)
        self.topic_new = function("topic_new", pointer, pointer, text, pointer)
        self.queue_new = function("queue_new", pointer, pointer)
        self.queue_destroy = function("queue_destroy", None, pointer)
        self.start = function("consume_start_queue", number, pointer, partition, offset, pointer)
        self.stop = function("consume_stop", number, pointer, partition)
        self.consume = function("consume_batch_queue", ctypes.c_ssize_t, pointer, number, pointer, size)
        self.watermarks = function(
            "query_watermark_offsets", number, pointer, text, partition, offsets, offsets, number
        )
        self.fault_text = function("message_errstr", text, pointer)
        self.last_fault = function("last_error", number)
        self.text_of = function("err2str", text, number)
        self.time_of = _address(library.rd_kafka_message_timestamp)
        self.destroy_message = _address(library.rd_kafka_message_destroy)

        self.conf_set_delivery = function("conf_set_dr_msg_cb", None, pointer, Delivery)
        self.topic_destroy = function("topic_destroy", None, pointer)
        self.topic_name = function("topic_name", text, pointer)
        self.flush = function("flush", number, pointer, number)
        self.init_transactions = function("init_transactions", pointer, pointer, number)
        self.begin_transaction = function("begin_transaction", pointer, pointer)
        self.send_offsets = function("send_offsets_to_transaction", pointer, pointer, pointer, pointer, number)
        self.commit_transaction = function("commit_transaction", pointer, pointer, number)
        self.abort_transaction = function("abort_transaction", pointer, pointer, number)
        self.offsets_new = function("topic_partition_list_new", pointer, number)
        self.offsets_add = function("topic_partition_list_add", pointer, pointer, text, partition)
        self.offsets_destroy = function("topic_partition_list_destroy", None, pointer)
        self.group_new = function("consumer_group_metadata_new", pointer, text)
        self.group_destroy = function("consumer_group_metadata_destroy", None, pointer)
        self.error_code = function("error_code", number, pointer)
        self.error_text = function("error_string", text, pointer)
        self.error_is_fatal = function("error_is_fatal", number, pointer)
        self.error_is_retriable = function("error_is_retriable", number, pointer)
        self.error_ends_transaction = function("error_txn_requires_abort", number, pointer)
        self.error_destroy = function("error_destroy", None, pointer)
        self.produce = _address(library.rd_kafka_produceva)


def _address(function: Any) -> int:
    address = ctypes.cast(function, ctypes.c_void_p).value
    assert address is not None
    return address


@cache
def library() -> Library:
    """Return the library that confluent-kafka itself uses.

    Raises
    ------
    SetupError : the library is not on this machine.
    """
    site = Path(confluent_kafka.__file__).parent.parent
    found = next(map(str, chain.from_iterable(site.glob(pattern) for pattern in _IN_WHEEL)), None)
    found = found or ctypes.util.find_library("rdkafka")
    if found is None:
        raise SetupError(
            f"no librdkafka beside confluent-kafka in {site}, and none on this system. Install confluent-kafka from "
            "its wheel (pip install --only-binary confluent-kafka confluent-kafka), or librdkafka."
        )
    return Library(found)


def new_client(kind: int, options: Mapping[str, str], delivery: Any = None) -> int:
    """Return the handle of a new client.

    Parameters
    ----------
    kind : PRODUCER or CONSUMER.
    delivery : a `Delivery` that the library calls with delivery reports; the caller keeps it as long as the client.

    Raises
    ------
    SetupError : an option is wrong.
    """
    c = library()
    fault = ctypes.create_string_buffer(_LONGEST_FAULT)
    conf = c.conf_new()
    for name, value in options.items():
        if c.conf_set(conf, name.encode(), value.encode(), fault, _LONGEST_FAULT):
            c.conf_destroy(conf)
            raise _refused(fault)
    c.conf_set_log(conf, None)  # the errors of the service say what happened; lines on stderr would say it again
    if delivery is not None:
        c.conf_set_delivery(conf, delivery)
    client = c.new(kind, conf, fault, _LONGEST_FAULT)
    if not client:
        c.conf_destroy(conf)
        raise _refused(fault)
    return int(client)


class Connection:
    """One client of the C library, with its handles of topics; it lives as long as the process.

    Parameters
    ----------
    options : client options with `bootstrap.servers`; they take precedence over the service's defaults.

    Raises
    ------
    SetupError : an option is wrong.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        self.handle = new_client(CONSUMER, _DEFAULT_OPTIONS | dict(options) | _FIXED_OPTIONS)
        self.servers = options["bootstrap.servers"]
        self._topics: dict[str, int] = {}
        atexit.register(library().destroy, self.handle, _NO_WAIT)

    def topic(self, name: str) -> int:
        """Return the handle of a topic."""
        if name not in self._topics:
            self._topics[name] = library().topic_new(self.handle, name.encode(), None)
        return self._topics[name]

    def watermarks(self, topic: str, partition: int, timeout_ms: int) -> tuple[int, int] | None:
        """Return the first offset of a partition and the one after its last; None if the broker does not answer."""
        first, after = ctypes.c_int64(), ctypes.c_int64()
        failed = library().watermarks(
            self.handle, topic.encode(), partition, ctypes.byref(first), ctypes.byref(after), timeout_ms
        )
        return None if failed else (first.value, after.value)


def _refused(fault: Any) -> SetupError:
    text = fault.value.decode(errors="replace")
    return SetupError(f"Kafka's client refuses its options: {text}. Correct [kafka.options] in the configuration.")


@cache
def connection(options: tuple[tuple[str, str], ...]) -> Connection:
    """Return this process's client with these options, the same one in every call: a new one would connect anew."""
    return Connection(dict(options))
