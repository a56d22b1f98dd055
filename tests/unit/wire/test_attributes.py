"""The texts of attribute values: equal values have equal texts, and nothing else has."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bmq.records import Format
from bmq.records.attribute_texts import NULL, OTHER, SEPARATOR
from bmq.wire.attributes import attribute_text, concat_attributes
from bmq.wire.numeral import Numeral
from bmq.wire.record_formats import RECORD_FORMATS

scalars = st.none() | st.booleans() | st.integers(-9, 9) | st.floats(allow_nan=False) | st.text(max_size=3)


def are_equal(one: Any, other: Any) -> bool:
    """JSON's equality, which Python's is but for booleans: there True == 1."""
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


@given(one=scalars, other=scalars)
def test_two_values_have_one_text_exactly_if_they_are_equal(one: Any, other: Any) -> None:
    assert (attribute_text(one) == attribute_text(other)) == (
        are_equal(one, other) or attribute_text(one) == attribute_text(other) == OTHER
    )


@given(value=scalars)
def test_a_text_is_json_and_means_the_value(value: Any) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        assert attribute_text(value) == OTHER
    else:
        assert are_equal(json.loads(attribute_text(value)), value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Numeral("5"), "5.0"),
        (Numeral("5e0"), "5.0"),
        (Numeral("-0.0"), "0.0"),
        (Numeral("1e999"), OTHER),
        (Numeral("nan"), OTHER),
        ("5", '"5"'),
        ("-", '"-"'),
        ("ä\x1f", '"ä\\u001f"'),
        ("\ud800", '"\\ud800"'),
        (True, "true"),
        (None, NULL),
        ([], OTHER),
        ({}, OTHER),
    ],
)
def test_a_value_of_each_type_has_the_text_that_is_written(value: object, text: str) -> None:
    assert attribute_text(value) == text


@given(values=st.lists(scalars, min_size=1))
def test_what_is_joined_differs(values: list[Any]) -> None:
    texts = [attribute_text(value) for value in values]
    assert concat_attributes(texts).split(SEPARATOR) == texts


@pytest.mark.parametrize(
    ("value", "in_json", "in_csv"), [("17", '"17"', "17.0"), (" 1.70e1", '" 1.70e1"', "17.0"), ("a", '"a"', '"a"')]
)
def test_a_string_that_reads_as_a_number_means_that_number_in_csv(value: str, in_json: str, in_csv: str) -> None:
    texts = [RECORD_FORMATS[each].where_text(value) for each in (Format.JSON, Format.CSV)]
    assert texts == [in_json, in_csv]


def test_every_format_is_in_the_table_of_formats() -> None:
    assert set(RECORD_FORMATS) == set(Format)
