"""Python's cyclic garbage collector, paused while a piece of work makes very many objects."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def paused_collector() -> Iterator[None]:
    """Let the collector do nothing inside. Objects without cycles, which are nearly all, are freed as ever.

    A batch with 200,000 commands makes millions of objects that stay. The collector looks through them again and again:
    it takes half of the time of reading the commands, and a third of that of applying them.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
