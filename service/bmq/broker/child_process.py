"""A child process that ends with us, however we end. Knows POSIX processes and nothing else of ours."""

import subprocess
from pathlib import Path
from typing import IO

# Its input is a pipe that nobody writes to, so `read` returns when we are gone and the system closes our end,
# after a kill -9 too. Not PR_SET_PDEATHSIG, which only Linux has, and which fires when the *thread* ends that
# started the child.
_WATCH = """
read -r _
kill -TERM "$1" 2>/dev/null || exit 0
i=0
while [ $i -lt 100 ]; do
    kill -0 "$1" 2>/dev/null || exit 0
    sleep 0.1
    i=$((i + 1))
done
kill -KILL "$1"
"""


class Watched:
    """A running child, in a session of its own: Ctrl-C at the terminal is for us, who then stop it in order.

    Parameters
    ----------
    command : the program and its arguments.
    folder : where it runs.
    log : takes its output and errors.
    keep_open : a file descriptor that it inherits, e.g. a lock.
    """

    def __init__(self, command: list[str], *, folder: Path, log: IO[bytes], keep_open: int) -> None:
        self._child = subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=(keep_open,),
        )
        self._watcher = subprocess.Popen(
            ["/bin/sh", "-c", _WATCH, "watcher", str(self._child.pid)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    @property
    def pid(self) -> int:
        """The child's process id."""
        return self._child.pid

    def exit_code(self) -> int | None:
        """Return how the child ended, or None while it runs."""
        code = self._child.poll()
        if code is not None:
            self._dismiss_watcher()
        return code

    def stop(self, limit_seconds: float) -> None:
        """End the child with SIGTERM, or with SIGKILL after ``limit_seconds``; return when it is gone."""
        self._child.terminate()
        try:
            self._child.wait(limit_seconds)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()
        self._dismiss_watcher()

    def _dismiss_watcher(self) -> None:
        """End the watcher before its pipe closes: a pid that is reaped may become another program's."""
        self._watcher.kill()
        self._watcher.wait()
        if self._watcher.stdin is not None:
            self._watcher.stdin.close()
