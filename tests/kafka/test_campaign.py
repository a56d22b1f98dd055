"""A short campaign of faults and a short soak; the long ones are `make campaign` and `make soak`."""

from pathlib import Path

import pytest

from tests.campaign.__main__ import run as run_campaign
from tests.soak.__main__ import run as run_soak
from tests.soak.samples import what_grows

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(1_200)]


def test_a_short_campaign_loses_and_doubles_nothing_and_says_why_it_stopped(tmp_path: Path) -> None:
    faults = ("kill_a_part", "stop_a_part", "delete_own_topic", "damage_checkpoint", "send_wild_records")
    assert run_campaign(tmp_path, n_faults=5, seed=7, only=faults) == []


def test_nothing_grows_in_a_minute(tmp_path: Path) -> None:
    assert run_soak(tmp_path, minutes=0.8, seed=1) == []


def test_what_grows_is_found() -> None:
    flat = [{"jvm descriptors": 400.0 + i % 3, "home memory": 100.0} for i in range(60)]
    leaking = [{"jvm descriptors": 400.0 + i, "home memory": 100.0} for i in range(60)]
    growing = [{"jvm descriptors": 400.0, "home memory": 100.0 + 5 * i} for i in range(60)]
    one_step = [{"jvm descriptors": 400.0, "home memory": 100.0 + 200 * (i > 10)} for i in range(60)]

    assert what_grows(flat) == []
    assert [line.partition(":")[0] for line in what_grows(leaking)] == ["jvm descriptors"]
    assert [line.partition(":")[0] for line in what_grows(growing)] == ["home memory"]
    assert what_grows(one_step) == []
