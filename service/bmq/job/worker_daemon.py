"""The process from which Spark forks its Python workers, with everything already loaded.

Spark starts one daemon for each executor and forks a worker whenever it needs one. An empty worker would import pandas
and Arrow and load each kernel at its first use, which takes seconds in the middle of a batch. A worker that is forked
from this daemon has all of it at once, and shares the memory.
"""

import pyspark.daemon

import bmq.job.source.range_task  # noqa: F401 - loaded for the workers
from bmq.job.homes import serve_home
from bmq.job.nursery import fork_nursery
from bmq.job.warmup import load_for_forks
from bmq.kafka_io import writer_process
from bmq.owned_process import own_workers

if __name__ == "__main__":
    owner = own_workers()
    writer_process.start(owner)
    load_for_forks()
    fork_nursery(owner, serve_home)
    pyspark.daemon.manager()
