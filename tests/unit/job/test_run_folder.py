"""The folder of a run: what a killed run has left goes at the next start, and what a living one uses stays."""

import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import pytest

from bmq.errors import SetupError
from bmq.job.run_folder import RunFolder
from bmq.owned_process import LONGEST_FOLDER

HOLDS_ONE = """
import sys
from bmq.job.run_folder import RunFolder
folder = RunFolder(sys.argv[1])
(folder.path / "shuffle").write_bytes(b"x")
print(folder.path, flush=True)
sys.stdin.read()
"""


def test_a_start_removes_what_a_killed_run_left_and_keeps_what_a_living_one_uses(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLDS_ONE, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        theirs = Path(other.stdout.readline().strip())

        while_it_lives = RunFolder(str(tmp_path))
        assert (theirs / "shuffle").exists()
        while_it_lives.leave()

        other.kill()
    assert theirs.exists()

    ours = RunFolder(str(tmp_path))

    assert not theirs.exists()
    ours.leave()
    assert not list(tmp_path.iterdir())


def test_nobody_else_can_open_it(tmp_path: Path) -> None:
    folder = RunFolder(str(tmp_path))

    assert folder.path.stat().st_mode & 0o077 == 0
    assert folder.path.parent.stat().st_mode & 0o077 == 0
    folder.leave()


def test_a_folder_that_others_can_open_is_refused(tmp_path: Path) -> None:
    RunFolder(str(tmp_path)).path.parent.chmod(0o755)

    with pytest.raises(SetupError, match="nobody else can open"):
        RunFolder(str(tmp_path))


def test_a_socket_of_spark_fits_in_the_folder_of_a_run() -> None:
    parent = "/" + "t" * (LONGEST_FOLDER - 2)  # the longest that `socket_folder` takes
    longest = f"{parent}/bmq-{2**32 - 1}/run-12345678/.{uuid4()}.sock"

    assert len(longest) <= 103


def test_a_folder_that_cannot_be_made_is_an_error_with_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(SetupError, match=r"file \(.*Not a directory.*\)\. Set TMPDIR"):
        RunFolder(str(tmp_path / "file"))


def test_a_folder_that_is_not_of_a_run_stays(tmp_path: Path) -> None:
    first = RunFolder(str(tmp_path))
    (first.path.parent / "writer-1").touch()

    second = RunFolder(str(tmp_path))

    assert {path.name for path in second.path.parent.iterdir()} == {
        "writer-1",
        first.path.name,
        second.path.name,
    }
