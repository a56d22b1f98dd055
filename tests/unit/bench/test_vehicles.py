"""What the rival of the experiments in the plane is made of."""

import pytest

from bench.figures import vehicles
from bench.figures.figure import Scale

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(("n_queries", "megabytes"), [(500, 63.5), (5_000, 203.0)])
def test_ces_takes_as_many_bytes_as_in_the_paper(n_queries: int, megabytes: float) -> None:
    # BMQ-Processor, section 7.2.3: queries of 5 km. Fewer vehicles here, whose matching sets are small.
    found = vehicles.storage(Scale.SMOKE, n_queries, 5.0, (vehicles.CES,))

    assert found[vehicles.CES] == pytest.approx(megabytes, rel=0.04)
