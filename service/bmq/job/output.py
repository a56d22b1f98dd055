"""The one row of a shard and batch that leaves the operator: its counters. The operator writes the messages itself."""

import pandas as pd

OUTPUT_DDL = "shard int, counters string"


def counters_row(shard: int, counters: str) -> pd.DataFrame:
    """Return the row that carries a shard's counters to the driver."""
    return pd.DataFrame({"shard": pd.Series([shard], dtype="int32"), "counters": [counters]})
