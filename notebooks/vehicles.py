# %% [markdown]
# # Vehicles and zones
#
# Which vehicles stayed in a zone of the city, when, and for how long? The zones are a GeoDataFrame, the positions a
# pandas frame. No Kafka and no Spark is needed: `pip install bmq geopandas`.
#
# This file is a notebook in the percent format: VS Code, PyCharm and Jupytext open it as one, and `python` runs it.

# %%
import geopandas
import numpy as np
import pandas
import shapely

import bmq

# %% [markdown]
# Three zones in degrees. In your own work, read them with `geopandas.read_file` and `.to_crs(4326)`.

# %%
zones = geopandas.GeoDataFrame(
    {"zone": ["harbour", "market", "station"]},
    geometry=[
        shapely.box(8.52, 53.56, 8.56, 53.58),
        shapely.Point(8.58, 53.55).buffer(0.01),
        shapely.Polygon([(8.58, 53.56), (8.62, 53.56), (8.60, 53.59)]),
    ],
    crs=4326,
)
print(zones)

# %% [markdown]
# Fifty vehicles that wander for two hours, one position in ten seconds.

# %%
N_VEHICLES, N_STEPS = 50, 720
random = np.random.default_rng(20060509)
begins = random.uniform((8.52, 53.54), (8.62, 53.59), (N_VEHICLES, 2))
steps = random.normal(0, 0.0006, (N_STEPS, N_VEHICLES, 2))
places = begins + np.cumsum(steps, axis=0)
times = pandas.date_range("2026-05-09 08:00", periods=N_STEPS, freq="10s", tz="UTC")
positions = pandas.DataFrame(
    {
        "time": np.repeat(times, N_VEHICLES),
        "vehicle": np.tile([f"v{number}" for number in range(N_VEHICLES)], N_STEPS),
        "lon": places[:, :, 0].ravel(),
        "lat": places[:, :, 1].ravel(),
    }
)

# %% [markdown]
# One query a zone. `stay_for` leaves out the visits that only touch a zone.

# %%
feed = bmq.Feed("vehicles", ["lon", "lat"], stream_id="vehicle", event_time="time", space="lonlat")
monitor = bmq.Monitor(feed)
for zone, geometry in zip(zones["zone"], zones.geometry, strict=True):
    region = {"geojson": shapely.geometry.mapping(geometry)}
    monitor.put(zone, {"kind": "border", "feed": "vehicles", "region": region, "stay_for": "1m"})

# %%
n_events = monitor.advance({"vehicles": positions})
print(f"{len(positions):,} positions gave {n_events} events")

# %% [markdown]
# A visit is a `+` and the next `-` of the same vehicle and zone.

# %%
events = monitor.events().to_pandas()
pairs = events.groupby(["query_id", "stream_id"])
visits = events.assign(until=pairs["event_time"].shift(-1))[events["sign"] == "+"]
visits["minutes"] = (visits["until"] - visits["event_time"]).dt.total_seconds() / 60
print(visits.groupby("query_id")["minutes"].describe()[["count", "mean", "max"]].round(1))

# %% [markdown]
# Where the vehicles entered, as a GeoDataFrame: ready for `.explore()` or a file.

# %%
entries = geopandas.GeoDataFrame(
    visits[["query_id", "stream_id", "event_time", "minutes"]],
    geometry=geopandas.points_from_xy(visits["value.lon"], visits["value.lat"]),
    crs=4326,
)
inside = geopandas.sjoin(entries, zones)
print(f"{len(entries)} entries, {(inside['query_id'] == inside['zone']).sum()} of them in the zone of their query")
