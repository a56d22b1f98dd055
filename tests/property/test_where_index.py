"""Queries with `where` are found as if each were asked, whatever comes and goes in between."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bmq.engines.scope import where_index
from bmq.engines.scope.conditions import Conditions
from bmq.engines.scope.where_index import WhereIndex
from bmq.records import IndexKind, Region, Where
from bmq.records.attribute_texts import SEPARATOR

pytestmark = pytest.mark.property

ATTRIBUTES = ("group", "size")
VALUES = ["1.0", '"a"', '"b"', "null"]

texts = st.tuples(st.sampled_from(VALUES), st.sampled_from(VALUES)).map(SEPARATOR.join)
wheres = st.dictionaries(
    st.sampled_from(ATTRIBUTES),
    st.sets(st.sampled_from(VALUES), min_size=1).map(lambda s: tuple(sorted(s))),
    min_size=1,
).map(lambda where: tuple(sorted(where.items())))
regions = st.integers(-2, 2).flatmap(lambda lo: st.integers(lo + 1, 3).map(lambda hi: Region((lo,), (hi,))))
readings = st.tuples(st.integers(0, 1), st.integers(-3, 3), texts)


def fits(where: Where, text: str) -> bool:
    values = dict(zip(ATTRIBUTES, text.split(SEPARATOR), strict=True))
    return all(values[name] in allowed for name, allowed in where)


@pytest.mark.parametrize(("many", "pairs_at_once"), [(1, 1), (2, 1), (2, 1_000_000), (64, 2), (64, 1_000_000)])
@given(data=st.data())
def test_it_finds_what_asking_each_query_finds(many: int, pairs_at_once: int, data: st.DataObject) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(where_index, "MANY", many)
        patch.setattr(where_index, "PAIRS_AT_ONCE", pairs_at_once)
        index = WhereIndex(1, IndexKind.SCAN, Conditions(ATTRIBUTES))
        queries: dict[int, tuple[Where, Region]] = {}
        last: dict[int, tuple[float, str]] = {}
        for _ in range(data.draw(st.integers(1, 5))):
            gone = data.draw(st.sets(st.sampled_from(sorted(queries)))) if queries else set()
            index.deregister(np.array(sorted(gone), dtype=np.int32))
            for slot in gone:
                del queries[slot]
            free = sorted(set(range(6)) - queries.keys())
            added = {slot: data.draw(st.tuples(wheres, regions)) for slot in free if data.draw(st.booleans())}
            queries |= added
            index.register(
                np.array(list(added), dtype=np.int32),
                [where for where, _ in added.values()],
                [region for _, region in added.values()],
            )
            batch = data.draw(st.lists(readings, max_size=4, unique_by=lambda reading: reading[0]))
            if index.n_codes and data.draw(st.booleans()):
                index.forget_all_but(index.learn([text for _, text in last.values()]))
            index._check()

            expected = set()
            for row, (stream, value, text) in enumerate(batch):
                for slot, (where, region) in queries.items():
                    before = last.get(stream)
                    was = before is not None and region.lo[0] <= before[0] < region.hi[0] and fits(where, before[1])
                    now = region.lo[0] <= value < region.hi[0] and fits(where, text)
                    if was != now:
                        expected.add((row, slot, 1 if now else -1))
            known = np.array([stream in last for stream, _, _ in batch], dtype=np.bool_)
            previous = [last.get(stream, (0.0, text)) for stream, _, text in batch]
            moves = index.moves(
                np.array([stream for stream, _, _ in batch], dtype=np.int32),
                known,
                np.array([[value for value, _ in previous]], dtype=np.float64),
                np.array([[value for _, value, _ in batch]], dtype=np.float64),
                index.learn([text for _, text in previous]),
                index.learn([text for _, _, text in batch]),
            )
            found = list(zip(moves.rows.tolist(), moves.queries.tolist(), moves.signs.tolist(), strict=True))
            assert len(found) == len(set(found))
            assert set(found) == expected
            assert (np.diff(moves.rows) >= 0).all()
            last |= {stream: (float(value), text) for stream, value, text in batch}


@given(known=st.sets(texts), asked=st.lists(texts), wheres=st.lists(wheres, min_size=1))
def test_a_condition_fits_the_same_whether_or_not_a_query_has_it(
    known: set[str], asked: list[str], wheres: list[Where]
) -> None:
    index = WhereIndex(1, IndexKind.SCAN, Conditions(ATTRIBUTES))
    index.learn(sorted(known))
    index.register(np.arange(len(wheres) - 1, dtype=np.int32), wheres[1:], [Region((0.0,), (1.0,)) for _ in wheres[1:]])
    codes = index.learn(asked)

    for where in wheres:
        assert index.fits_where(where, codes).tolist() == [fits(where, text) for text in asked]


@pytest.mark.parametrize("many", [1, 3])
@given(
    queries=st.lists(st.tuples(wheres, regions), min_size=1, max_size=6),
    pairs=st.lists(st.tuples(st.integers(0, 5), st.integers(-3, 3))),
)
def test_whether_a_region_holds_a_value_does_not_depend_on_its_condition(
    many: int, queries: list[tuple[Where, Region]], pairs: list[tuple[int, int]]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(where_index, "MANY", many)
        index = WhereIndex(1, IndexKind.SCAN, Conditions(ATTRIBUTES))
        index.register(np.arange(len(queries), dtype=np.int32), *zip(*queries, strict=True))
    pairs = [(slot % len(queries), value) for slot, value in pairs]

    held = index.holds(
        np.array([slot for slot, _ in pairs], dtype=np.int32), np.array([[v for _, v in pairs]], dtype=np.float64)
    )

    assert held.tolist() == [queries[slot][1].lo[0] <= value < queries[slot][1].hi[0] for slot, value in pairs]


def test_nothing_is_kept_of_queries_and_texts_that_went() -> None:
    index = WhereIndex(1, IndexKind.SCAN, Conditions(ATTRIBUTES))
    index.learn(['"a"' + SEPARATOR + f"{i}.0" for i in range(100)])
    slots = np.arange(where_index.MANY + 1, dtype=np.int32)
    where = (("group", ('"a"',)), ("size", ("1.0", "2.0")))
    index.register(slots, [where] * slots.size, [Region((0.0,), (1.0,))] * slots.size)

    index.deregister(slots)
    index.forget_all_but(np.array([7], dtype=np.int32))

    index._check()
    assert (len(index), index.n_codes, index.text(7)) == (0, 1, '"a"' + SEPARATOR + "7.0")
