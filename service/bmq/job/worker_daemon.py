"""What Spark starts as the daemon of its Python workers (`spark.python.daemon.module`).

Where a process has loaded the kernels already, it forks the daemon and this one passes on what the JVM says; elsewhere
this one becomes the daemon.
"""

from bmq.job.preloaded import stand_in

if __name__ == "__main__":
    stand_in()
    # Not at the top: it takes two seconds, and whoever stands in needs none of it.
    from bmq.job.forking import serve
    from bmq.job.warmup import load_for_forks

    load_for_forks()
    serve()
