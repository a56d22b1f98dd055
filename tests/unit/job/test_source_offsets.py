"""The ranges of a batch: they cover what is between two positions, once, and show what was lost."""

import json

from hypothesis import given
from hypothesis import strategies as st

from bmq.job.source.offsets import (
    RANGE_COST,
    SMALLEST_PART,
    Loss,
    Position,
    Range,
    losses,
    next_end,
    plan_ranges,
    work_of_tasks,
)

places = st.dictionaries(st.integers(0, 3), st.integers(0, 400_000), max_size=4)
positions = st.dictionaries(st.sampled_from(["a", "b"]), places, max_size=2).map(Position)
limits = st.none() | st.integers(1, 500_000)


def grown(start: Position, more: Position) -> Position:
    """Return a position that is nowhere before ``start``."""
    topics = {*start.offsets, *more.offsets}
    return Position(
        {
            topic: {
                partition: start.offsets.get(topic, {}).get(partition, 0)
                + more.offsets.get(topic, {}).get(partition, 0)
                for partition in {*start.offsets.get(topic, {}), *more.offsets.get(topic, {})}
            }
            for topic in topics
        }
    )


@given(start=positions, more=positions, limit=limits, n_tasks=st.integers(1, 5))
def test_ranges_cover_each_offset_once_and_in_order(
    start: Position, more: Position, limit: int | None, n_tasks: int
) -> None:
    end = next_end(start, grown(start, more), limit)

    ranges = plan_ranges(start, end, n_tasks)

    assert all(at.start < at.end and at.loss is None for at in ranges)
    for topic, partitions in end.offsets.items():
        for partition, after in partitions.items():
            reached = start.offsets.get(topic, {}).get(partition, 0)
            for at in ranges:
                if (at.topic, at.partition) == (topic, partition):
                    assert at.start == reached
                    reached = at.end
            assert reached == after


@given(start=positions, more=positions, limit=st.integers(1, 500_000))
def test_a_batch_has_no_more_than_its_limit_but_one_record_of_each_partition(
    start: Position, more: Position, limit: int
) -> None:
    available = grown(start, more)

    sizes = [at.end - at.start for at in plan_ranges(start, next_end(start, available, limit), 1)]

    all_sizes = [at.end - at.start for at in plan_ranges(start, available, 1)]
    # All that has something gets something.
    assert len({(at.topic, at.partition) for at in plan_ranges(start, available, 1)}) <= len(sizes)
    assert sum(sizes) <= max(limit + len(all_sizes), 0)
    if sum(all_sizes) <= limit:
        assert sum(sizes) == sum(all_sizes)


def test_a_partition_that_is_far_behind_is_divided_over_the_tasks() -> None:
    n = 8 * SMALLEST_PART

    assert plan_ranges(Position({"a": {0: 5, 1: 5}}), Position({"a": {0: 5 + n, 1: 6}}), 4) == [
        Range("a", 0, 5 + n * i // 4, 5 + n * (i + 1) // 4) for i in range(4)
    ] + [Range("a", 1, 5, 6)]
    assert len(plan_ranges(Position({"a": {0: 0}}), Position({"a": {0: SMALLEST_PART}}), 4)) == 1


@given(position=positions)
def test_the_offset_log_gives_a_position_back(position: Position) -> None:
    named = Position(position.offsets, dict.fromkeys(position.offsets, "id"))

    for written in (position, named):
        assert Position.of(json.loads(json.dumps(written.document()))) == written


def test_a_line_of_sparks_own_source_is_a_position() -> None:
    assert Position.of(json.loads('{"stocks":{"1":20,"0":17}}')) == Position({"stocks": {0: 17, 1: 20}})


def test_equal_positions_have_one_text() -> None:
    one = Position({"b": {1: 2, 0: 1}, "a": {}}, {"b": "y", "a": "x"})
    other = Position({"a": {}, "b": {0: 1, 1: 2}}, {"a": "x", "b": "y"})

    assert json.dumps(one.document()) == json.dumps(other.document())


def test_a_topic_with_another_id_is_read_from_its_beginning_whatever_its_offsets() -> None:
    start = Position({"a": {0: 5, 1: 7}, "b": {0: 1}}, {"a": "old", "b": "same"})
    available = Position({"a": {0: 9}, "b": {0: 2}}, {"a": "new", "b": "same"})

    end = next_end(start, available, None)

    assert end == available
    assert plan_ranges(start, end, 1) == [Range("a", 0, 0, 9, Loss.RECREATED, 5), Range("b", 0, 1, 2)]
    assert losses(start, end) == [Range("a", 0, 0, 9, Loss.RECREATED, 5)]


def test_a_partition_that_ends_earlier_goes_on_at_its_end() -> None:
    start, available = Position({"a": {0: 5}}, {"a": "id"}), Position({"a": {0: 3}}, {"a": "id"})

    end = next_end(start, available, 10)

    assert end == available
    assert plan_ranges(start, end, 1) == [Range("a", 0, 3, 3, Loss.CUT_OFF, 5)]


def test_a_deleted_topic_and_a_missing_id_keep_their_place() -> None:
    start = Position({"a": {0: 5}, "b": {0: 1}}, {"a": "id"})

    end = next_end(start, Position({"b": {0: 4}}), None)

    assert end == Position({"a": {0: 5}, "b": {0: 4}}, {"a": "id"})
    assert plan_ranges(start, end, 1) == [Range("b", 0, 1, 4)]


@given(start=positions, more=positions, limit=limits, n_tasks=st.integers(1, 5))
def test_tasks_read_all_ranges_in_order_and_only_small_ones_together(
    start: Position, more: Position, limit: int | None, n_tasks: int
) -> None:
    ranges = plan_ranges(start, next_end(start, more, limit), n_tasks)
    tasks = work_of_tasks(ranges)
    assert [at for task in tasks for at in task] == ranges
    for task in tasks:
        assert len(task) == 1 or sum(RANGE_COST + at.end - at.start for at in task) <= SMALLEST_PART


def test_few_records_of_many_partitions_are_one_task() -> None:
    quiet = [Range("a", partition, 10, 85) for partition in range(4)]
    assert work_of_tasks(quiet) == [tuple(quiet)]
    assert len(work_of_tasks([Range("a", partition, 0, 1) for partition in range(100)])) >= 10
    assert work_of_tasks([]) == []
