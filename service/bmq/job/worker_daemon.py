"""The process that Spark's Python workers are forked from, with everything already loaded.

Spark starts one daemon an executor and forks a worker whenever it needs one. A worker that began empty would
import pandas and Arrow and load each kernel when it first meets it, seconds within somebody's batch; forked from
here it has all of it at once, and shares the memory.
"""

import gc

from pyspark.daemon import manager

import bmq.job.stateful  # noqa: F401 - loaded for the workers
from bmq.job.warmup import warm_up

if __name__ == "__main__":
    warm_up()
    # Otherwise the first collection in a worker would touch, and so copy, every object made here.
    gc.collect()
    gc.freeze()
    manager()
