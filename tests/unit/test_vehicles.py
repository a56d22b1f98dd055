"""What the rival of the experiments in the plane is made of."""

import pytest

from bench.figures import vehicles
from bench.figures.figure import Scale

pytestmark = pytest.mark.unit


def test_ces_takes_as_many_bytes_as_in_the_paper() -> None:
    # BMQ-Processor, section 7.2.3: 63.5 MB at 500 queries of 5 km. Fewer vehicles here, whose matching sets are small.
    megabytes = vehicles.storage(Scale.SMOKE, 500, 5.0, (vehicles.CES,))

    assert megabytes[vehicles.CES] == pytest.approx(63.5, rel=0.03)
