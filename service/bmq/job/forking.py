"""The daemon of the Python workers: Spark's own, with everything already loaded.

Spark starts one daemon for each executor and forks a worker whenever it needs one. An empty worker would import pandas
and Arrow and load each kernel at its first use, which takes seconds in the middle of a batch. A worker that is forked
from this daemon has all of it at once, and shares the memory.
"""

import pyspark.worker  # noqa: F401 - loaded for the workers, like the next two

import bmq.job.source.range_task
import bmq.job.stateful  # noqa: F401
from bmq.job.homes import serve_home
from bmq.job.nursery import fork_nursery
from bmq.kafka_io import writer_process
from bmq.owned_process import own_workers


def serve() -> None:
    """Be the daemon, until the JVM closes standard input."""
    owner = own_workers()
    writer_process.start(owner)
    fork_nursery(owner, serve_home)
    import pyspark.daemon  # here: it reads the arguments of its process

    pyspark.daemon.manager()
