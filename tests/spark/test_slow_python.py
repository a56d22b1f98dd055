"""A Python process that Spark starts takes too long to answer: the sentence says that the machine is too busy."""

import sys
from pathlib import Path

import pytest

from bmq.job.failed_query import JobFailed, explained
from bmq.job.rehearsal import rehearse
from bmq.job.session import make_session
from tests.spark.test_rehearsal import plan

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]


def test_a_python_that_starts_slowly_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = tmp_path / "python"
    slow.write_text(f'#!/bin/sh\nsleep 12\nexec {sys.executable} "$@"\n')
    slow.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(slow))  # Spark starts what `make_session` names
    session = make_session(2)
    try:
        with pytest.raises(JobFailed, match=r"^The machine is too busy: .* 10 s\..* more cores\."), explained():
            rehearse(session, plan())
    finally:
        session.stop()
