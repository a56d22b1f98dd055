"""The transitions of some garages, counted from where the vehicles were: the definition, and nothing of the service's.

Slow on purpose: every sampled garage is asked about every reading.
"""

from collections import defaultdict

import numpy as np

from bench.rtmq_traffic import BASE_MS, GARAGE_M, PATTERNS, PERIOD_SECONDS, Traffic, vehicle_id

# A minute, for a hundred garages and twenty million readings.
QUESTIONS = 2_000_000_000

Events = set[tuple[str, str, int, int]]  # (query id, vehicle, began, event time)
Waits = dict[tuple[int, int], int]  # (garage, vehicle) -> when the pattern began


def sampled_garages(traffic: Traffic) -> range:
    """Return the garages that are recounted: a hundred of ten thousand, all in a small run."""
    n_readings = traffic.n_vehicles * traffic.n_seconds // PERIOD_SECONDS
    n_sampled = min(traffic.n_garages, max(1, QUESTIONS // n_readings))
    # An odd step, so that all patterns are among them.
    return range(0, traffic.n_garages, (traffic.n_garages // n_sampled) | 1)


def recount(traffic: Traffic) -> Events:
    """Return (query id, vehicle, began, event time) of the sampled garages, counted from the readings alone."""
    lo = traffic.corners()
    inside: dict[int, set[int]] = defaultdict(set)
    waits: Waits = {}
    events: Events = set()
    for second, (who, places) in enumerate(traffic.seconds()):
        now = BASE_MS + 1000 * second
        _fire(traffic, waits, now, events)
        for garage in sampled_garages(traffic):
            held = np.logical_and.reduce(
                (places >= lo[:, garage, None]) & (places < (lo[:, garage, None] + GARAGE_M)), axis=0
            )
            here = set(who[held].tolist())
            before = {vehicle for vehicle in inside[garage] if vehicle % PERIOD_SECONDS == second % PERIOD_SECONDS}
            for vehicle in here - before:
                _cross(traffic, waits, events, garage, vehicle, now, "in")
            for vehicle in before - here:
                _cross(traffic, waits, events, garage, vehicle, now, "out")
            inside[garage] = (inside[garage] - before) | here
    return events


def _cross(traffic: Traffic, waits: Waits, events: Events, garage: int, vehicle: int, now: int, way: str) -> None:
    """Take a crossing: it begins the pattern of the garage, or ends it."""
    first, second = PATTERNS[garage % len(PATTERNS)].replace("then_", "").replace("not_", "").split("_")
    if way == first:
        waits[garage, vehicle] = now
        return
    assert way == second
    began = waits.pop((garage, vehicle), None)
    is_then = "then" in PATTERNS[garage % len(PATTERNS)]
    if began is not None and is_then and now - began <= traffic.within_ms:
        events.add((f"g{garage}", vehicle_id(vehicle), began, now))


def _fire(traffic: Traffic, waits: Waits, now: int, events: Events) -> None:
    """End what has waited for longer than the queries' time."""
    for (garage, vehicle), began in list(waits.items()):
        # The clock has to be beyond the due, and all readings at the due come first.
        if began + traffic.within_ms < now:
            del waits[garage, vehicle]
            if "not" in PATTERNS[garage % len(PATTERNS)]:
                events.add((f"g{garage}", vehicle_id(vehicle), began, began + traffic.within_ms))
