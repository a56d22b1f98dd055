"""What a load takes of a machine: sums that grow with what they are of, and the fullest limit first."""

from dataclasses import replace

import pytest

from bmq.sizing import MEASURED, USED_AT_MOST, Load, Machine, lines, sizing

pytestmark = pytest.mark.unit

LARGE = Machine(cores=10_000, memory_bytes=1e15)
LOAD = Load(streams=1_000_000, queries=10_000, rate=100_000, crossings=0.1)


def test_twice_the_load_takes_twice_what_depends_on_it() -> None:
    one = sizing(LOAD, LARGE, MEASURED, shards=8)
    two = sizing(replace(LOAD, streams=2_000_000, queries=20_000, rate=200_000), LARGE, MEASURED, shards=8)

    fixed = 8 * MEASURED.shard_batch_s
    assert two.cores - fixed == pytest.approx(2 * (one.cores - fixed))
    fixed = MEASURED.jvm_bytes + MEASURED.python_bytes
    assert two.memory - fixed == pytest.approx(2 * (one.memory - fixed))
    assert two.checkpoint == pytest.approx(2 * one.checkpoint)
    assert (two.read, two.written) == pytest.approx((2 * one.read, 2 * one.written))


def test_each_shard_has_all_queries_and_a_part_of_the_streams() -> None:
    few, many = (sizing(LOAD, LARGE, MEASURED, shards=shards) for shards in (2, 10))

    assert many.memory - few.memory == pytest.approx(8 * LOAD.queries * MEASURED.query_bytes)


def test_so_many_shards_that_no_home_is_at_its_limit() -> None:
    found = sizing(replace(LOAD, rate=50_000_000), LARGE, MEASURED)

    (home,) = [limit for limit in found.limits if limit.name == "the home of a shard"]
    assert found.shards > 2
    assert home.share <= USED_AT_MOST


@pytest.mark.parametrize(
    ("load", "machine", "first"),
    [
        (replace(LOAD, rate=10_000_000), Machine(2, 1e12), "cores"),
        (replace(LOAD, streams=1_000_000_000), Machine(64, 24e9), "memory"),
        (replace(LOAD, rate=100_000, crossings=1000), Machine(100_000, 1e15), "the writer of an executor"),
    ],
)
def test_the_limit_that_breaks_first_is_named_with_a_way_out(load: Load, machine: Machine, first: str) -> None:
    found = sizing(load, machine, MEASURED)

    assert found.limits[0].name == first
    assert [limit.share for limit in found.limits] == sorted((limit.share for limit in found.limits), reverse=True)
    assert list(lines(found))[-1] == f"Too much: {first} breaks first. The way out: {found.limits[0].way_out}."


def test_a_small_load_fits() -> None:
    found = sizing(Load(streams=1000, queries=100, rate=1000, crossings=0.1), Machine(8, 32e9), MEASURED)

    assert found.shards == 2
    assert list(lines(found))[-1].startswith("It fits.")
