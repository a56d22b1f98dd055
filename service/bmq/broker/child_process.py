"""A child process that ends when its parent ends, in whatever way. Knows POSIX processes and no other module."""

import subprocess
from pathlib import Path
from typing import IO

# The watcher's input is a pipe that nobody writes to. `read` returns when the parent ends and the system closes the
# parent's side of the pipe, even after a kill -9. PR_SET_PDEATHSIG is no alternative: only Linux has it, and it fires
# when the *thread* that started the child ends.
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
    """A running child in its own session: Ctrl-C at the terminal reaches only the parent, which then stops it cleanly.

    Parameters
    ----------
    command : the program and its arguments.
    folder : the working folder of the child.
    log : receives the child's output and errors.
    keep_open : a file descriptor that the child inherits, e.g. a lock.
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
        """Return the child's exit code, or None while it runs."""
        code = self._child.poll()
        if code is not None:
            self._dismiss_watcher()
        return code

    def stop(self, limit_seconds: float) -> None:
        """End the child with SIGTERM, or with SIGKILL after ``limit_seconds``; return when it has ended."""
        self._child.terminate()
        try:
            self._child.wait(limit_seconds)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()
        self._dismiss_watcher()

    def _dismiss_watcher(self) -> None:
        """End the watcher before its pipe closes: it would signal the child's pid, which another process may reuse."""
        self._watcher.kill()
        self._watcher.wait()
        if self._watcher.stdin is not None:
            self._watcher.stdin.close()
