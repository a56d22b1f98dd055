"""Installs the wheel as a user does, and uses it away from the checkout: `make wheel-check`.

1. Build the wheel.
2. In a new environment with `bmq` alone: a program with `import bmq` gets its event, and there is no pyspark.
3. In a new environment with `bmq[service]`: `bmq --version`, and `bmq demo` until a stream crosses a border.
4. There, too: `bmq broker`, `bmq serve` and `bmq view`; the page and each of its files answer 200.

The packages are the newest that pyproject.toml allows, as a user gets them, and not those of requirements.lock. Kafka
and the compiled kernels come from the cache of this machine (BMQ_CACHE_DIR names another).
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from bmq.broker.ports import free_ports
from tests.brokers import wait_until
from tests.pages import get

ROOT = Path(__file__).parents[2]
STATIC = Path("service") / "bmq" / "view" / "static"
START_LIMIT_SECONDS = 600.0  # an empty cache has to compile kernels
PROGRAM = """
import importlib.util
import bmq

assert importlib.util.find_spec("pyspark") is None, "bmq alone brings pyspark"
monitor = bmq.Monitor(bmq.Feed("stocks", ["price"]))
monitor.put("forties", {"kind": "border", "feed": "stocks", "region": {"box": {"price": [40, 50]}}})
monitor.advance({"stocks": {"id": ["ACME"], "ts": [1700000000000], "price": [45.0]}})
event, = monitor.events().to_pylist()
print(bmq.__file__, event["sign"], event["query_id"], event["stream_id"])
"""
CONFIG = """
[feeds.stocks]
topic = "stocks"
stream_id = "id"
event_time = "ts"
dimensions = ["price"]
[metrics]
port = {port}
"""

T = TypeVar("T")


class Installed:
    """A new environment with the wheel, and an empty folder to work in."""

    def __init__(self, folder: Path, requirement: str) -> None:
        self.folder = folder / "work"
        self.folder.mkdir(parents=True)
        self._bin = folder / "venv" / "bin"
        # Nothing of the checkout and of its environment: not on Python's path, and not on the shell's.
        left_out = ("PYTHONPATH", "VIRTUAL_ENV", "PATH")
        self._environment = {name: text for name, text in os.environ.items() if name not in left_out}
        self._environment["PATH"] = f"{self._bin}{os.pathsep}/usr/local/bin{os.pathsep}/usr/bin{os.pathsep}/bin"
        subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
        self.run("python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", requirement)

    def run(self, name: str, *arguments: str) -> str:
        """Return what a program of the environment prints; it must succeed."""
        command = [str(self._bin / name), *arguments]
        ran = subprocess.run(command, env=self._environment, cwd=self.folder, capture_output=True, text=True)
        assert ran.returncode == 0, f"{' '.join(command[:4])}\n{ran.stdout}\n{ran.stderr}"
        return ran.stdout

    @contextmanager
    def running(self, *arguments: str, until: str) -> Iterator[re.Match[str]]:
        """Run `bmq` in the background; yield the match of a pattern in its output, once it is there."""
        log = self.folder / f"{arguments[0]}.log"
        with log.open("wb") as output:
            command = [str(self._bin / "bmq"), *arguments]
            process = subprocess.Popen(command, env=self._environment, cwd=self.folder, stdout=output, stderr=output)

        def found() -> re.Match[str] | None:
            text = log.read_text()
            assert process.poll() is None, f"bmq {arguments[0]} has ended:\n{text}"
            return re.search(until, text)

        try:
            yield wait_until(found, f"{until!r} of bmq {arguments[0]}", START_LIMIT_SECONDS)
        finally:
            process.terminate()
            process.wait(120)

    def set(self, name: str, text: str) -> None:
        """Set a variable of the environment."""
        self._environment[name] = text


def build_wheel(folder: Path, source: Path) -> Path:
    """Return the wheel, built from a copy of what the version control has; the copy is in ``source``."""
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, names.split("\0")):
        if (ROOT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, source / name)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([*command, "--wheel-dir", folder / "dist", source], check=True)
    (wheel,) = (folder / "dist").glob("*.whl")
    return wheel


def check_library(folder: Path, wheel: Path) -> str:
    """Check the wheel alone; return what it printed."""
    printed = Installed(folder, str(wheel)).run("python", "-c", PROGRAM)
    where, *event = printed.split()
    assert where.startswith(str(folder)), where
    assert event == ["+", "forties", "ACME"], printed
    return printed.strip()


def check_commands(user: Installed) -> str:
    """Check `bmq --version` and `bmq demo`; return the line of the first crossing."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert user.run("bmq", "--version").split() == ["bmq", version]
    with user.running("demo", "vehicles", "--port", "0", until=r"\|  (.* (?:entered|left) .*)\n") as line:
        return line[1]


def check_page(user: Installed, static: Path) -> list[str]:
    """Start a broker, the service and the page; return the addresses that answered 200 with the files of ``static``."""
    (port,) = free_ports(1)
    (user.folder / "config").mkdir()
    (user.folder / "config" / "local.toml").write_text(CONFIG.format(port=port))
    with user.running("broker", "--port", "0", until=r"Kafka listens at (\S+),") as servers:
        user.set("BMQ_KAFKA__BOOTSTRAP_SERVERS", servers[1])
        with (
            user.running("serve", until="Running"),
            user.running("view", "--port", "0", until=r"The page is at (http\S+/)") as shown,
        ):
            address = shown[1]
            assert get(address) == (200, (static / "index.html").read_text())
            files = sorted(path.relative_to(static).as_posix() for path in (static / "assets").iterdir())
            for name in files:
                with urllib.request.urlopen(address + name, timeout=10) as answer:  # noqa: S310  # this machine's own
                    assert (answer.status, answer.read()) == (200, (static / name).read_bytes()), name
            return [address, *files]


def main() -> None:
    """Check everything, and print a line for each step."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.parse_args()
    began = time.monotonic()

    def step(name: str, check: Callable[[], T]) -> T:
        done = check()
        print(f"{time.monotonic() - began:5.0f} s  {name}: {done}", flush=True)
        return done

    with tempfile.TemporaryDirectory(prefix="bmq-wheel-") as name:
        folder = Path(name)
        wheel = step("the wheel", lambda: build_wheel(folder, folder / "source"))
        step("import bmq without pyspark", lambda: check_library(folder / "library", wheel))
        user = Installed(folder / "service", f"{wheel}[service]")
        step("bmq demo", lambda: check_commands(user))
        step("bmq serve and bmq view", lambda: check_page(user, folder / "source" / STATIC))


if __name__ == "__main__":
    main()
