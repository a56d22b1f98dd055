"""A nursery (`job.nursery`) in place of one that was killed; it loads the kernels itself, which takes seconds."""

import os
import sys

from bmq.job.homes import serve_home
from bmq.job.nursery import Nursery
from bmq.job.warmup import load_for_forks
from bmq.owned_process import Door, has_ended


def main(address: str, owner: int, lock: int) -> None:
    """Serve until the owner has ended; the arguments are those of `owned_process.start_once`."""
    if has_ended(owner):
        return
    load_for_forks()
    door = Door(address, owner)
    os.close(lock)
    Nursery(owner, door, serve_home).run()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
