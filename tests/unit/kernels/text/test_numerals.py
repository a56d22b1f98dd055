"""Numbers and times read from bytes are the ones that Python's own parsers read."""

import re
from datetime import UTC, datetime, timedelta

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from bmq.kernels.text.numerals import LONG_NUMERAL, NO_NUMERAL, NUMERAL, ODD_NUMERAL, read_numeral
from bmq.kernels.text.times import read_rfc3339

JSON_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")

texts = (
    st.text("0123456789.eE+-", max_size=30)
    | st.from_regex(JSON_NUMBER, fullmatch=True, alphabet="0123456789.eE+-")
    | st.floats(allow_nan=False, allow_infinity=False).map(repr)
    | st.floats(-1e6, 1e6).map("{:.2f}".format)
    | st.integers(-(2**70), 2**70).map(str)
)


def as_bytes(text: str) -> np.ndarray:
    return np.frombuffer(text.encode(), np.uint8)


@given(text=texts)
@example(text="-0")
@example(text="0e999")
@example(text="9007199254740993")
@example(text="0.00000000000000000000001")
@example(text="999999999999999999e22")
def test_a_numeral_is_json_and_its_value_is_exact_or_left_to_others(text: str) -> None:
    after, found, value = read_numeral(as_bytes(text), 0, len(text))

    is_number = JSON_NUMBER.fullmatch(text) is not None
    assert (found != NO_NUMERAL and after == len(text)) == is_number
    if is_number and found == NUMERAL:
        assert repr(float(value)) == repr(float(text))
    if is_number and found == LONG_NUMERAL:
        # Far from overflow and underflow, so that any correct parser may read it.
        assert float(text) == 0 or 1e-200 < abs(float(text)) < 1e200


@given(text=st.floats(-1e6, 1e6).map("{:.6f}".format))
def test_readings_of_few_digits_need_no_other_parser(text: str) -> None:
    assert read_numeral(as_bytes(text), 0, len(text))[1] == NUMERAL


@given(digits=st.integers(1, 9), exponent=st.integers(101, 10**9), sign=st.sampled_from(["", "-"]))
def test_a_number_that_may_overflow_is_set_apart(digits: int, exponent: int, sign: str) -> None:
    text = f"{digits}e{sign}{exponent}"

    assert read_numeral(as_bytes(text), 0, len(text))[1] == ODD_NUMERAL


@given(text=texts, before=st.text("[, 1", max_size=3), after=st.text(",]}1.e ", max_size=3))
def test_a_numeral_is_not_read_past_its_end(text: str, before: str, after: str) -> None:
    begin, end = len(before), len(before) + len(text)

    position, found, value = read_numeral(as_bytes(before + text + after), begin, end)

    alone = read_numeral(as_bytes(text), 0, len(text))
    assert (position - begin, found, value) == alone


offsets = st.integers(-24 * 60 + 1, 24 * 60 - 1)


@given(at=st.datetimes(), offset=offsets, separator=st.sampled_from("Tt "), n_digits=st.integers(0, 6))
@example(at=datetime(1, 1, 1), offset=0, separator="T", n_digits=0)
@example(at=datetime(9999, 12, 31, 23, 59, 59, 999_999), offset=0, separator="T", n_digits=6)
def test_a_time_is_its_epoch_milliseconds(at: datetime, offset: int, separator: str, n_digits: int) -> None:
    fraction = f".{at.microsecond:06d}"[: n_digits + 1] if n_digits else ""
    zone = f"{'-' if offset < 0 else '+'}{abs(offset) // 60:02d}:{abs(offset) % 60:02d}" if offset else "Z"
    text = f"{at.year:04d}-{at:%m-%d}{separator}{at:%H:%M:%S}{fraction}{zone}"

    is_time, milliseconds = read_rfc3339(as_bytes(text), 0, len(text))

    microseconds = int(fraction[1:].ljust(6, "0")) if fraction else 0
    since = at.replace(microsecond=microseconds, tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    assert is_time
    assert milliseconds == (since - timedelta(minutes=offset)) // timedelta(milliseconds=1)


@given(text=st.text("0123456789-:.TZ+ ", max_size=30))
def test_any_other_text_is_no_time(text: str) -> None:
    is_time, _ = read_rfc3339(as_bytes(text), 0, len(text))

    rfc3339 = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
    assert not is_time or rfc3339.fullmatch(text)
