"""The table of kinds is complete, and the kinds of events are columns."""

import numpy as np

from bmq.records import Family, Kind, are_of_family, present_kinds
from bmq.wire.kinds import KINDS


def test_every_kind_has_a_row_in_the_table_in_the_order_of_kinds() -> None:
    assert list(KINDS) == list(Kind)


def test_the_models_of_a_kind_name_it() -> None:
    for kind, known in KINDS.items():
        for model in (known.definition, known.event):
            schema = model.model_json_schema()["properties"]["kind"]
            assert kind in schema.get("enum", [schema.get("const")])


def test_only_queries_of_crossings_have_members() -> None:
    assert [kind for kind in Kind if KINDS[kind].reports is None] == [
        kind for kind in Kind if kind.family is Family.CROSSING
    ]


def test_the_kinds_of_a_column_are_found_by_number_and_by_family() -> None:
    kinds = np.array([kind.number for kind in (Kind.SELECT, Kind.BORDER, Kind.MATCH, Kind.SELECT)], dtype=np.int8)

    assert present_kinds(kinds) == [Kind.BORDER, Kind.MATCH, Kind.SELECT]
    assert are_of_family(kinds, Family.LEVEL).tolist() == [True, False, True, True]
    assert are_of_family(kinds, Family.CROSSING).tolist() == [False, True, False, False]
    assert present_kinds(kinds[:0]) == []
