"""Find the conditions that the attributes of a reading fit, and the attributes that fit a condition.

One text contains all attributes of a reading, and each text has a code, a small number. Whether a code fits a condition
is computed once: when the later of the two is added. The module knows texts as `wire.attributes` writes them. It knows
no queries and no streams.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from bmq.records import Bools, Int32s, Where
from bmq.records.attribute_texts import SEPARATOR

CODES_MIN = 4096  # so many attribute texts are kept: the search for the texts in use costs a millisecond

Key = tuple[int, str]  # place of an attribute in a text, and its value


@dataclass(frozen=True, slots=True, eq=False)
class Condition:
    """A condition on the attributes of a reading; one `Conditions` has one object for equal conditions.

    Attributes
    ----------
    where : the allowed values of each attribute that the condition names.
    keys : the allowed values of one of these attributes; each text that fits contains one of them.
    """

    where: Where
    keys: tuple[Key, ...]


class Conditions:
    """The conditions and the attribute texts of one feed, shared by all indexes of the feed.

    Parameters
    ----------
    attributes : names, in the order of the values in a text.
    """

    def __init__(self, attributes: tuple[str, ...]) -> None:
        self._places = {name: place for place, name in enumerate(attributes)}
        self._conditions: dict[Where, Condition] = {}
        self._n_uses: Counter[Condition] = Counter()
        self._listeners: list[Callable[[Sequence[int]], None]] = []
        self._codes: dict[str, int] = {}
        self._texts: list[str | None] = []  # by code; None: free
        self._free: list[int] = []
        self._fitting: list[dict[Condition, None]] = []  # by code; a dict is ordered, and fast to remove from
        self._listed: dict[Key, dict[Condition, None]] = defaultdict(dict)
        self._codes_by_key: dict[Key, set[int]] = defaultdict(set)

    # -- texts --------------------------------------------------------------------------------------------

    @property
    def n_codes(self) -> int:
        """The number of texts that have a code."""
        return len(self._codes)

    def learn(self, texts: Sequence[str]) -> Int32s:
        """Return the code of each text, int32[n]; the same text has the same code until it is forgotten."""
        return np.array([self._code(text) for text in texts], dtype=np.int32)

    def text(self, code: int) -> str:
        """Return the text of a code."""
        text = self._texts[code]
        assert text is not None, f"code {code} is free"
        return text

    def on_forgotten(self, forget: Callable[[Sequence[int]], None]) -> None:
        """Register a callback: it is called with forgotten codes, before they are reused for other texts."""
        self._listeners.append(forget)

    def forget_all_but(self, codes: Int32s) -> None:
        """Forget the texts of all other codes; these codes may then be reused for other texts. O(codes)."""
        forgotten = sorted(set(self._codes.values()).difference(codes.tolist()))
        for code in forgotten:
            text = self.text(code)
            for key in _keys(text):
                self._codes_by_key[key].remove(code)
                if not self._codes_by_key[key]:
                    del self._codes_by_key[key]
            del self._codes[text]
            self._texts[code] = None
            self._fitting[code] = {}
        self._free += forgotten
        for forget in self._listeners:
            forget(forgotten)

    def _code(self, text: str) -> int:
        code = self._codes.get(text)
        if code is not None:
            return code
        if self._free:
            code = self._free.pop()
        else:
            code = len(self._texts)
            self._texts.append(None)
            self._fitting.append({})
        self._codes[text] = code
        self._texts[code] = text
        for key in _keys(text):
            self._codes_by_key[key].add(code)
            for condition in self._listed.get(key, ()):
                if self._fits(condition.where, text):
                    self._fitting[code][condition] = None
        return code

    # -- conditions ---------------------------------------------------------------------------------------

    def add(self, where: Where) -> Condition:
        """Add a condition and return it; it stays until it is removed as often as it was added.

        Parameters
        ----------
        where : not empty. If it is new, the cost is O(codes with one of its keys).
        """
        condition = self._conditions.get(where)
        if condition is None:
            condition = self._conditions[where] = Condition(where, self._rarest_keys(where))
            for key in condition.keys:
                self._listed[key][condition] = None
            for code in self.codes(condition):
                self._fitting[code][condition] = None
        self._n_uses[condition] += 1
        return condition

    def remove(self, condition: Condition) -> None:
        """Undo one `add` of a condition; the last `remove` forgets it."""
        self._n_uses[condition] -= 1
        if self._n_uses[condition]:
            return
        del self._n_uses[condition], self._conditions[condition.where]
        for code in self.codes(condition):
            del self._fitting[code][condition]
        for key in condition.keys:
            del self._listed[key][condition]
            if not self._listed[key]:
                del self._listed[key]

    def fitting(self, code: int) -> Iterator[Condition]:
        """Return the conditions that a code fits."""
        return iter(self._fitting[code])

    def codes(self, condition: Condition) -> list[int]:
        """Return the codes that fit a condition."""
        return self._codes_that_fit(condition.where, condition.keys)

    def fits_where(self, where: Where, codes: Int32s) -> Bools:
        """Return which codes fit ``where``, bool[n]; it need not be a condition that was added."""
        keys = self._rarest_keys(where)
        if codes.size < self._n_codes_with(keys):
            return np.array([self._fits(where, self.text(code)) for code in codes.tolist()], dtype=np.bool_)
        fit = np.zeros(len(self._texts), dtype=np.bool_)
        fit[self._codes_that_fit(where, keys)] = True
        return fit[codes]

    def _fits(self, where: Where, text: str) -> bool:
        values = text.split(SEPARATOR)
        return all(values[self._places[name]] in allowed for name, allowed in where)

    def _codes_that_fit(self, where: Where, keys: Sequence[Key]) -> list[int]:
        codes = (code for key in keys for code in self._codes_by_key.get(key, ()))
        return [code for code in codes if len(where) == 1 or self._fits(where, self.text(code))]

    def _rarest_keys(self, where: Where) -> tuple[Key, ...]:
        """Return the allowed values of the attribute with the fewest listed conditions and codes."""
        choices = [tuple((self._places[name], value) for value in allowed) for name, allowed in where]
        return min(
            choices, key=lambda keys: self._n_codes_with(keys) + sum(len(self._listed.get(key, ())) for key in keys)
        )

    def _n_codes_with(self, keys: Sequence[Key]) -> int:
        return sum(len(self._codes_by_key.get(key, ())) for key in keys)

    def _check(self) -> None:
        """State every invariant; for tests."""
        for text, code in self._codes.items():
            assert self._texts[code] == text
            fitting = {condition for condition in self._conditions.values() if self._fits(condition.where, text)}
            assert set(self._fitting[code]) == fitting
        assert sorted([*self._codes.values(), *self._free]) == list(range(len(self._texts)))
        # Nothing is kept of removed conditions and forgotten texts.
        assert set(self._n_uses) == set(self._conditions.values())
        assert all(n > 0 for n in self._n_uses.values())
        assert set(self._codes_by_key) == {key for text in self._codes for key in _keys(text)}
        assert set(self._listed) == {key for condition in self._conditions.values() for key in condition.keys}


def _keys(text: str) -> list[Key]:
    return list(enumerate(text.split(SEPARATOR)))


def number_of(text: str) -> float:
    """Return an attribute's JSON text as a number; -inf: it is not a number.

    The text of a string begins with a quote, so the string "5" is not a number.
    """
    try:
        return float(text)
    except ValueError:
        return -np.inf
