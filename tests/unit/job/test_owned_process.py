"""Where the processes of an executor listen."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from bmq import owned_process
from bmq.errors import SetupError
from bmq.owned_process import address_of


def _link(folder: Path) -> None:
    elsewhere = folder.with_name("elsewhere")
    elsewhere.mkdir(mode=0o700)
    folder.symlink_to(elsewhere)


def _open_to_others(folder: Path) -> None:
    folder.mkdir()
    folder.chmod(0o770)


@pytest.mark.parametrize("spoil", [_link, _open_to_others])
def test_a_folder_that_others_could_write_to_is_refused(
    spoil: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owned_process, "socket_folder", lambda: str(tmp_path))
    assert address_of("writer", 7) == str(tmp_path / f"bmq-{os.getuid()}/writer-7")
    (tmp_path / f"bmq-{os.getuid()}").rmdir()
    spoil(tmp_path / f"bmq-{os.getuid()}")

    with pytest.raises(SetupError, match="must be a folder of this user that nobody else can open"):
        address_of("writer", 7)


def test_a_long_temporary_folder_is_not_the_folder_of_sockets(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    long = tmp_path / ("x" * owned_process.LONGEST_FOLDER)
    monkeypatch.setattr("tempfile.tempdir", str(long))

    assert owned_process.socket_folder() != str(long)
    assert len(owned_process.socket_folder()) < owned_process.LONGEST_FOLDER
