"""Decoded readings as plain values, to compare the ways in which records are decoded."""

from bmq.wire.readings import Decoded


def shown(decoded: Decoded) -> list[tuple[object, ...]]:
    """Return (row, stream id, event time, dimensions, attributes) of each reading; repr tells -0.0 from 0.0."""
    readings = decoded.readings
    return [
        (
            int(row),
            readings.ids.text(i),
            int(readings.event_times[i]),
            repr(readings.values[:, i].tolist()),
            None if readings.attributes is None else readings.attributes.texts[readings.attributes.codes[i]],
        )
        for i, row in enumerate(decoded.rows)
    ]
