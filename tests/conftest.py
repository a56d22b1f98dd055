"""For every test: Hypothesis profiles, the stacks of a test that hangs, its worker, one Kafka and its topics."""

import faulthandler
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests.brokers import Topics, living_process, running_broker
from tests.disks import mount, unmount
from tests.workers import FOLDERS, FoldersAndFiles

# The first call of a kernel compiles it and takes most of a second, far over Hypothesis' deadline of 200 ms.
# Speed is the job of bench/, not of the tests.
settings.register_profile("dev", deadline=None, max_examples=50)
# The same examples in each run, so more of them find nothing new; `make nightly` draws others, and 1,000 of them.
settings.register_profile("ci", deadline=None, max_examples=60, derandomize=True)
# Without compilation a kernel takes a hundred times as long.
settings.register_profile("nojit", deadline=None, max_examples=10, derandomize=True)
# For a night: other examples in each run, so a failure says how to make it again.
settings.register_profile("nightly", deadline=None, max_examples=20_000, print_blob=True)
# Every test in it takes some hours together, and 20,000 examples of each would take days.
settings.register_profile("long", deadline=None, max_examples=1_000, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))

TESTS = Path(__file__).parent

# pytest-timeout interrupts Python code only: a test that waits inside a C library would say nothing.
STACKS_BEFORE_TIMEOUT_SECONDS = 5.0

_stderr = pytest.StashKey[int]()


# A shell that starts tests in the background lets them ignore Ctrl-C, and so would the children that are to end by it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The JVMs of tests end after some minutes at most, so optimised code costs them more to compile than it saves.
os.environ.setdefault("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1")


def pytest_configure(config: pytest.Config) -> None:
    # A copy, since during a test pytest replaces descriptor 2 by a file that a hanging test never shows.
    config.stash[_stderr] = os.dup(sys.__stderr__.fileno() if sys.__stderr__ else 2)


def pytest_unconfigure(config: pytest.Config) -> None:
    os.close(config.stash[_stderr])


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark each test with the name of its folder, so that `-m unit` needs nobody's care; order the folders."""
    for item in items:
        item.add_marker(_folder(item))
    items.sort(key=lambda item: FOLDERS.index(_folder(item)))


def _folder(item: pytest.Item) -> str:
    return item.path.relative_to(TESTS).parts[0]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> FoldersAndFiles:
    """Choose how `pytest -n` shares the tests among its workers."""
    return FoldersAndFiles(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Print the stacks of all threads shortly before pytest-timeout ends ``item``."""
    marker = item.get_closest_marker("timeout")
    limit = float(
        (marker and marker.args and marker.args[0])
        or item.config.getoption("timeout")
        or item.config.getini("timeout")
        or 0
    )
    if limit > STACKS_BEFORE_TIMEOUT_SECONDS:
        faulthandler.dump_traceback_later(limit - STACKS_BEFORE_TIMEOUT_SECONDS, file=item.config.stash[_stderr])
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()


@pytest.fixture(scope="session")
def bootstrap_servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The Kafka of this run: see tests/brokers.py for which one."""
    with running_broker(tmp_path_factory.mktemp("broker")) as servers:
        yield servers


@pytest.fixture
def topics(bootstrap_servers: str, request: pytest.FixtureRequest) -> Iterator[Callable[..., str]]:
    """`topics("events", partitions=4, config={...})` makes a topic of this test's own; returns its name."""
    made = Topics(bootstrap_servers, request.node.name)
    yield made.create
    made.remove_all()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder on a disk of 2 MB."""
    if why := mount(tmp_path, 2):
        pytest.skip(why)
    yield tmp_path
    unmount(tmp_path)


@pytest.fixture
def owner() -> Iterator[int]:
    """The process id of somebody who lives as long as the test."""
    with living_process() as pid:
        yield pid
