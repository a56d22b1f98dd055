"""Which partition Spark sends a shard's key to, and how many tasks run at once: asked of Spark itself."""

import pytest
from pyspark.sql import functions as F

from bmq.job.session import make_session
from bmq.job.shards import shard_keys

pytestmark = pytest.mark.spark


def test_every_shard_has_a_partition_of_its_own() -> None:
    spark = make_session(2)
    try:
        for n_shards in (1, 2, 4, 7, 64):
            keys = spark.createDataFrame([(key,) for key in shard_keys(n_shards)], "shard int")
            partitions = keys.repartition(n_shards, "shard").select("shard", F.spark_partition_id())

            assert dict(map(tuple, partitions.collect())) == {
                key: shard for shard, key in enumerate(shard_keys(n_shards))
            }
    finally:
        spark.stop()


def test_so_many_tasks_run_at_once_as_the_option_says() -> None:
    spark = make_session(2, n_workers=3)
    try:
        assert spark.sparkContext.defaultParallelism == 3
    finally:
        spark.stop()
