# %% [markdown]
# # Prices and bands
#
# Which stocks left their band, and how often would an alert have come with another rule? The readings are a Polars
# frame. No Kafka and no Spark is needed: `pip install bmq polars`.
#
# This file is a notebook in the percent format: VS Code, PyCharm and Jupytext open it as one, and `python` runs it.

# %%
import numpy as np
import polars

import bmq

# %% [markdown]
# Thirty stocks for a day: a price a second, as a random walk.

# %%
N_STOCKS, N_SECONDS = 30, 6 * 3600
random = np.random.default_rng(20060509)
walks = 50 + np.cumsum(random.normal(0, 0.01, (N_SECONDS, N_STOCKS)), axis=0)
first = 1_778_313_600_000  # 2026-05-09 08:00 UTC
prices = polars.DataFrame(
    {
        "time": np.repeat(first + 1000 * np.arange(N_SECONDS), N_STOCKS),
        "stock": np.tile([f"S{number:02}" for number in range(N_STOCKS)], N_SECONDS),
        "price": walks.ravel(),
    }
).with_columns(polars.col("time").cast(polars.Datetime("ms", "UTC")))

# %% [markdown]
# A query for each whole number, with three rules against noise. The `query_id` names the rule.

# %%
RULES = {
    "plain": {},
    "stay 30 s": {"stay_for": "30s"},
    "cooldown 10 min": {"cooldown": "10m"},
}
monitor = bmq.Monitor(bmq.Feed("stocks", ["price"], stream_id="stock", event_time="time"))
for rule, options in RULES.items():
    for low in range(45, 55):
        region = {"box": {"price": [low, low + 1]}}
        monitor.put(f"{rule}/{low}", {"kind": "border", "feed": "stocks", "region": region, **options})

# %%
n_events = monitor.advance({"stocks": prices})
print(f"{len(prices):,} prices gave {n_events:,} events")

# %% [markdown]
# How many alerts would each rule have sent?

# %%
events = polars.DataFrame(monitor.events())
alerts = (
    events.filter(polars.col("sign") == "+")
    .with_columns(polars.col("query_id").str.split("/").list.first().alias("rule"))
    .group_by("rule")
    .agg(polars.len().alias("alerts"), polars.col("stream_id").n_unique().alias("stocks"))
    .sort("alerts")
)
print(alerts)

# %% [markdown]
# The structure alone: the same crossings as numbers, for an algorithm of your own.

# %%
index = bmq.BorderIndex(1)
lows = np.arange(45.0, 55.0)
index.register(np.arange(10), lows, lows + 1)
streams = np.tile(np.arange(N_STOCKS), N_SECONDS - 1)
moves = index.move(walks[:-1].ravel(), walks[1:].ravel(), streams)
entered = np.count_nonzero(moves.signs == 1)
print(f"{moves.rows.size:,} crossings, {entered:,} of them in; {index.nbytes:,} bytes")

# %% [markdown]
# Both ways count the same: the monitor has one `+` more for each stock, which was first seen inside.

# %%
plain = events.filter(polars.col("query_id").str.starts_with("plain/") & (polars.col("sign") == "+"))
first_seen = plain.filter(polars.col("reason") == "first_seen").height
assert plain.height - first_seen == entered
print(f"{plain.height:,} alerts = {first_seen} first seen + {entered:,} crossings")
