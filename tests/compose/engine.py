"""A container engine of its own: podman with settings, images, containers and networks in one folder.

    <folder>/
      settings/      what podman reads in place of the files in /etc
      storage/       images, containers and volumes
      run/           what is gone after a restart of the machine

Knows podman and podman-compose, but nothing of what they start. A podman that the machine has for others sees none of
this.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from bmq.errors import SetupError
from tests.brokers import wait_until

COMMAND_LIMIT_SECONDS = 180.0  # for a command that does not build; the service may use 90 s to stop
BUILD_LIMIT_SECONDS = 3_600.0  # the image compiles every kernel: minutes on two free cores, many more on busy ones
PROGRAMS = ("podman", "buildah", "runc", "conmon", "netavark", "aardvark-dns", "iptables", "tini", "debootstrap")
LETTERS_SHOWN = 4_000  # of what a failed command has printed; a build prints much more
PACKAGES = "podman buildah runc conmon netavark aardvark-dns iptables tini debootstrap"


class EngineError(RuntimeError):
    """A command of the engine failed, or did not end in time."""


def settings(folder: Path) -> dict[str, str]:
    """Return file name -> text of what podman reads.

    runc and cgroupfs, without systemd, because a machine that is itself a container has none; no limits of its own for
    descriptors, because such a machine may not raise them; locks in files, because the shared memory that podman uses
    otherwise is that of the machine's own podman.
    """
    return {
        "containers.conf": "\n".join(
            [
                "[containers]",
                "default_ulimits = []",
                f'init_path = "{shutil.which("tini") or "/usr/bin/tini"}"',
                "[engine]",
                'runtime = "runc"',
                'cgroup_manager = "cgroupfs"',
                'events_logger = "file"',
                'lock_type = "file"',
                f'tmp_dir = "{folder / "run" / "podman"}"',
                "[network]",
                'network_backend = "netavark"',
                f'network_config_dir = "{folder / "networks"}"',
                "",
            ]
        ),
        "storage.conf": "\n".join(
            [
                "[storage]",
                'driver = "overlay"',
                f'graphroot = "{folder / "storage"}"',
                f'runroot = "{folder / "run"}"',
                "",
            ]
        ),
        # A name without a registry is Docker's. Nothing is fetched from there, because each image is here.
        "registries.conf": 'unqualified-search-registries = ["docker.io"]\nshort-name-mode = "disabled"\n',
    }


def variables(folder: Path) -> dict[str, str]:
    """Return the environment variables that name the files of `settings`."""
    names = {
        "CONTAINERS_CONF": "containers.conf",
        "CONTAINERS_STORAGE_CONF": "storage.conf",
        "CONTAINERS_REGISTRIES_CONF": "registries.conf",
    }
    return {
        **{variable: str(folder / "settings" / name) for variable, name in names.items()},
        "BUILDAH_FORMAT": "docker",  # the other format has no health checks
        "DISABLE_HC_SYSTEMD": "true",  # nobody runs a health check by the clock; `Rehearsal` asks for it
    }


def missing(environment: Mapping[str, str]) -> str | None:
    """Return a sentence that names what this machine lacks, or None."""
    if os.geteuid() != 0:
        return "The rehearsal needs root, because it makes networks and a Debian in a folder. Run it with sudo."
    path = environment.get("PATH", "") + os.pathsep + "/usr/sbin" + os.pathsep + "/usr/lib/podman"
    absent = [program for program in PROGRAMS if shutil.which(program, path=path) is None]
    if absent:
        return f"The rehearsal needs {', '.join(absent)} (Debian: apt install --no-install-recommends {PACKAGES})."
    return None


class Engine:
    """Podman with a folder of its own, and podman-compose for one compose file.

    Parameters
    ----------
    folder : made if it is missing. A path of more than some 60 bytes makes the names of podman's sockets too long.
    project : the folder of the compose file.
    compose : the command podman-compose.
    """

    def __init__(self, folder: Path, project: Path, compose: Path) -> None:
        lacks = missing(os.environ)
        if lacks is not None:
            raise SetupError(lacks)
        if not compose.is_file():
            raise SetupError(f"There is no {compose}. Run `make rehearse-compose`, which installs it.")
        self.folder = folder.absolute()
        self.project = project
        self._compose = str(compose)
        (self.folder / "settings").mkdir(parents=True, exist_ok=True)
        for name, text in settings(self.folder).items():
            (self.folder / "settings" / name).write_text(text)
        self.environment = {**os.environ, **variables(self.folder)}

    def remove(self) -> None:
        """Remove what the engine has made in its folder, and the folder if nothing else is there."""
        for name in ("settings", "storage", "run", "networks"):
            shutil.rmtree(self.folder / name, ignore_errors=True)
        with suppress(OSError):
            self.folder.rmdir()

    def podman(self, *words: str, limit_seconds: float = COMMAND_LIMIT_SECONDS) -> str:
        """Run podman; return what it prints.

        Raises
        ------
        EngineError
            It failed, or did not end in time.
        """
        return self._run(["podman", *words], None, limit_seconds)

    def succeeds(self, *words: str) -> bool:
        """Return whether a podman command ends with exit code 0."""
        return self._ran(["podman", *words], None, COMMAND_LIMIT_SECONDS).returncode == 0

    def log(self, container: str) -> str:
        """Return the end of what a container has printed."""
        ran = self._ran(["podman", "logs", "--tail", "40", container], None, COMMAND_LIMIT_SECONDS)
        return ran.stdout + ran.stderr

    def compose(self, *words: str, given: str | None = None, limit_seconds: float = COMMAND_LIMIT_SECONDS) -> str:
        """Run podman-compose; return what it prints.

        Parameters
        ----------
        given : the standard input.
        """
        # Without a pod each container has an address of its own, as with Docker.
        return self._run([self._compose, "--in-pod=false", *words], given, limit_seconds)

    def build(self, image: str, file: Path, context: Path, arguments: Mapping[str, str]) -> None:
        """Build an image; what did not change since the last time comes from the cache."""
        options = [word for name, value in arguments.items() for word in ("--build-arg", f"{name}={value}")]
        self.podman(
            "build", "--tag", image, "--file", str(file), *options, str(context), limit_seconds=BUILD_LIMIT_SECONDS
        )

    @contextmanager
    def socket(self) -> Iterator[str]:
        """Yield the address at which podman answers as Docker's engine does."""
        path = self.folder / "run" / "docker.sock"
        path.unlink(missing_ok=True)
        service = subprocess.Popen(["podman", "system", "service", "--time=0", f"unix://{path}"], env=self.environment)
        try:
            wait_until(path.exists, f"podman's socket {path}")
            yield f"unix://{path}"
        finally:
            service.terminate()
            service.wait(COMMAND_LIMIT_SECONDS)

    def _run(self, command: Sequence[str], given: str | None, limit_seconds: float) -> str:
        ran = self._ran(command, given, limit_seconds)
        if ran.returncode != 0:
            printed = (ran.stdout + ran.stderr)[-LETTERS_SHOWN:]
            raise EngineError(f"{' '.join(command)} ended with exit code {ran.returncode}:\n{printed}")
        return ran.stdout

    def _ran(
        self, command: Sequence[str], given: str | None, limit_seconds: float
    ) -> "subprocess.CompletedProcess[str]":
        try:
            return subprocess.run(
                command,
                cwd=self.project,
                env=self.environment,
                input=given or "",
                capture_output=True,
                text=True,
                timeout=limit_seconds,
            )
        except subprocess.TimeoutExpired as late:
            raise EngineError(f"{' '.join(command)} did not end within {limit_seconds:.0f} s.") from late
