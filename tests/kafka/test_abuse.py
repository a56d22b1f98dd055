"""Some of what one tenant does to the others; all of it, with its times, is `make abuse`."""

from pathlib import Path

import pytest

from tests.abuse.__main__ import run

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(900)]

# No measure of speed: an abuse that stops the others for good, or for as long as an unbounded join once did, fails.
LONGEST_SECONDS = 40.0


def test_what_costs_too_much_is_refused_while_the_others_go_on(tmp_path: Path) -> None:
    refused = ["5,000 nested squares", "a join of 1,500 by 1,500 streams"]
    _, measured = run(tmp_path, [*refused, "a number of 900,000 digits"])

    assert {one.name: one.codes for one in measured} == {
        "5,000 nested squares": ["over_limit"],
        "a join of 1,500 by 1,500 streams": ["over_limit"],
        "a number of 900,000 digits": [],
    }
    assert max(one.delays.most for one in measured) < 1000 * LONGEST_SECONDS
