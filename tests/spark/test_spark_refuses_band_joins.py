"""What the README says of Spark's own joins of streams, asked of Spark itself."""

import pytest
from pyspark.errors import StreamingQueryException

from bmq.job.session import make_session

pytestmark = pytest.mark.spark

BETWEEN = "l.price - r.price BETWEEN -1 AND 1"


def test_spark_joins_no_streams_without_an_equality() -> None:
    spark = make_session(1)
    try:
        for side in "lr":
            stream = spark.readStream.format("rate").load().selectExpr("cast(value as double) as price", "timestamp")
            stream.withWatermark("timestamp", "10 seconds").createOrReplaceTempView(side)

        joined = spark.sql(f"SELECT l.price FROM l JOIN r ON {BETWEEN}")
        with pytest.raises(StreamingQueryException, match="join without equality predicate is not supported"):
            joined.writeStream.format("noop").start().awaitTermination(60)
    finally:
        spark.stop()
