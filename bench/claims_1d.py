"""What `bounds.toml` claims of one dimension, measured: each function returns one number, and checks the answers.

The races are those of the figures (`bench.figures.line`).
"""

import statistics

from bench.figures.line import BMQ, CEI, IS_LIST, PUBLISHED, Length, made, race, ratio
from bench.figures.storage_1d import followed_bytes
from bench.stocks import Market


def time_against_diff_rmq() -> float:
    """Return the time of the faster DiffRMQ by BMQ-Index', at N = 100K, W = 0.1 % and FL = 0.01 %: 20 s."""
    times = race(Market(), Length(n_rounds=9, n_steps=20, n_calls=5))
    faster = map(min, times[CEI].ns, times[IS_LIST].ns)
    return statistics.median(rival / ours for rival, ours in zip(faster, times[BMQ].ns, strict=True))


def storage_against_cei() -> float:
    """Return the bytes of DiffRMQ (CEI), tuned for time, by BMQ-Index', at N = 100K and W = 0.1 %: 6 s."""
    market = Market()
    return followed_bytes(made(CEI, market), market) / followed_bytes(made(BMQ, market), market)


def processing_efficiency() -> float:
    """Return BMQ-Index' final results by queries looked at, in percent, at N = 100K and FL = W / 10: a second."""
    return race(Market(), Length(n_rounds=3, n_steps=20), [BMQ])[BMQ].efficiency


def skipping_speedup() -> float:
    """Return the time of the published walk by that of ours, at FL = 1 % and W = 0.01 %: 5 s."""
    times = race(Market(width_percent=0.01, fluctuation_percent=1.0), Length(n_rounds=7, n_steps=10), [BMQ, PUBLISHED])
    return ratio(times[PUBLISHED], times[BMQ])


def skipping_overhead() -> float:
    """Return the time of our walk by that of the published one, the worse of FL = W and FL = W / 10: 10 s."""
    found = []
    for level in (0.1, 0.01):
        times = race(Market(fluctuation_percent=level), Length(n_rounds=7, n_steps=20, n_calls=5), [BMQ, PUBLISHED])
        found.append(ratio(times[BMQ], times[PUBLISHED]))
    return max(found)
