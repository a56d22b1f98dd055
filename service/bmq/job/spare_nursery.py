"""A nursery (`job.nursery`) in place of one that was killed; it loads the kernels itself, which takes seconds."""

import os
import sys

from bmq.job.homes import serve_home
from bmq.job.nursery import listen, run_nursery
from bmq.job.warmup import warm_up


def main(address: str, owner: int, lock: int) -> None:
    """Serve until the owner has ended; the arguments are those of `owned_process.start_once`."""
    warm_up()
    listener = listen(address)
    os.close(lock)
    run_nursery(owner, address, listener, serve_home)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
