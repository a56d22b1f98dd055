"""The decode of feed records by the kernel scan: JSON against pyarrow.json's parsing alone, and Avro against JSON.

    python -m bench.decode

Claim: the whole decode (ids, times, values, hashes) costs less than half of what pyarrow.json takes to parse the same
buffer (docs/decisions/0004). Avro decodes at 0.7 of JSON's readings a second or more. Setup: 200,000 records of
about 55 bytes of JSON, the same readings in Avro, one core, interleaved, medians of 7.
"""

import io
import json
import statistics
import time
from collections.abc import Callable

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.json

from bench.workload import Workload, stream_id
from bmq.records import Feed, Format
from bmq.wire.readings import Decoded, Decoder

AVRO_SCHEMA = {
    "type": "record",
    "name": "Reading",
    "fields": [
        {"name": "id", "type": "string"},
        {"name": "ts", "type": "long"},
        {"name": "x", "type": "double"},
        {"name": "y", "type": "double"},
    ],
}
N_RECORDS = 200_000
REPEATS = 7
_SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("x", pa.float64()), ("y", pa.float64())])


def main() -> None:
    """Check that both read the same, then print ns a record for each."""
    values = records()
    joined = pa.py_buffer(b"\n".join(values.to_pylist()))
    decoder = Decoder(Feed("vehicles", "vehicles", "id", ("x", "y"), "ts"))
    record_times = np.zeros(N_RECORDS, dtype=np.int64)

    def scan() -> Decoded:
        return decoder.decode(None, values, record_times)

    avro_values = avro_records(values)
    avro_decoder = Decoder(Feed("v", "v", "id", ("x", "y"), "ts", Format.AVRO, schema=json.dumps(AVRO_SCHEMA)))

    def scan_avro() -> Decoded:
        return avro_decoder.decode(None, avro_values, record_times)

    def parse() -> pa.Table:
        return pa.json.read_json(
            pa.BufferReader(joined),
            read_options=pa.json.ReadOptions(use_threads=False, block_size=len(joined)),
            parse_options=pa.json.ParseOptions(explicit_schema=_SCHEMA, unexpected_field_behavior="ignore"),
        )

    readings, table = scan().readings, parse()
    np.testing.assert_array_equal(readings.values[0], table["x"].to_numpy())
    np.testing.assert_array_equal(readings.event_times, table["ts"].to_numpy())
    assert readings.ids.text(N_RECORDS - 1) == table["id"][-1].as_py()

    in_avro = scan_avro().readings
    np.testing.assert_array_equal(in_avro.values, readings.values)
    np.testing.assert_array_equal(in_avro.event_times, readings.event_times)
    np.testing.assert_array_equal(in_avro.ids.hashes, readings.ids.hashes)

    times: dict[str, list[float]] = {"scan": [], "avro": [], "pyarrow.json": []}
    for _ in range(REPEATS):
        times["scan"].append(ns_per_record(scan))
        times["avro"].append(ns_per_record(scan_avro))
        times["pyarrow.json"].append(ns_per_record(parse))
    medians = {name: statistics.median(measured) for name, measured in times.items()}
    print(" ".join(f"{name}={median:.0f}ns" for name, median in medians.items()))
    print(f"decode ratio={medians['pyarrow.json'] / medians['scan']:.2f}")
    print(f"avro: {medians['scan'] / medians['avro']:.2f} of JSON's readings a second")


def records() -> pa.Array:
    """Return the values of the first two rounds of the pipeline's workload."""
    workload = Workload(N_RECORDS // 2, 2, 0, 0.0)
    return pa.array(
        [
            f'{{"id":"{stream_id(i)}","ts":{event_time},"x":{x},"y":{y}}}'.encode()
            for event_time, xs, ys in workload.rounds()
            for i, (x, y) in enumerate(zip(xs.tolist(), ys.tolist(), strict=True))
        ],
        pa.binary(),
    )


def avro_records(values: pa.Array) -> pa.Array:
    """Return the same readings in Avro."""
    schema = fastavro.parse_schema(AVRO_SCHEMA)
    records = []
    for value in values.to_pylist():
        out = io.BytesIO()
        fastavro.schemaless_writer(out, schema, json.loads(value))
        records.append(out.getvalue())
    return pa.array(records, pa.binary())


def ns_per_record(run: Callable[[], object]) -> float:
    """Return what one call took, divided by the records."""
    start = time.perf_counter_ns()
    run()
    return (time.perf_counter_ns() - start) / N_RECORDS


if __name__ == "__main__":
    main()
