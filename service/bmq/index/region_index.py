"""The border index of regions of any form: boxes are in the index that their feed has, shapes in the index of shapes.

Knows which of the two has a query. It must not know how either of them finds queries.
"""

from collections.abc import Callable, Sequence

import numpy as np

from bmq.index.base import Moves, concat_moves
from bmq.index.border.adaptive_border import make_index
from bmq.index.layered import Layered
from bmq.index.match.adaptive_match import AdaptiveMatches
from bmq.index.match.select_index import SelectIndex
from bmq.index.shape.shape_grid import ShapeIndex
from bmq.records import Bools, Float64s, IndexKind, Int8s, Int32s, Region

NOTHING, BOX, SHAPE = 0, 1, 2

Boxes = Layered | AdaptiveMatches | SelectIndex
MakeBoxes = Callable[[int], Boxes]


class Areas:
    """A border index whose regions are `Region`s. Its answers and errors are those of `BorderIndex`.

    Parameters
    ----------
    n_dims : number of dimensions of values and regions; shapes need two.
    kind : the kind of border index for boxes; it must fit ``n_dims``. Ignored if ``make`` is given.
    make : makes the index of boxes: a border index, or a match index, which has no `moves`. None: the border index of
        ``kind``.
    """

    def __init__(self, n_dims: int, kind: IndexKind = IndexKind.AUTO, make: MakeBoxes | None = None) -> None:
        self.n_dims = n_dims
        self._boxes: Boxes = make_index(n_dims, kind) if make is None else make(n_dims)
        self._shapes: ShapeIndex | None = None  # None until there is a shape: the index costs every reading some time
        self._forms: Int8s = np.empty(0, dtype=np.int8)  # by slot: NOTHING, BOX or SHAPE
        self._n = 0

    def __len__(self) -> int:
        return self._n

    def register(self, slots: Int32s, regions: Sequence[Region]) -> None:
        """Add queries: int32[m] slots, and the region of each."""
        if not slots.size:
            return
        known = self._forms_of(slots) != NOTHING
        if known.any():
            raise ValueError(f"query slot {slots[known][0]} is registered already: deregister it first.")
        has_shape = np.array([region.shape is not None for region in regions])
        if has_shape.any():
            self._shapes = self._shapes or ShapeIndex()
            self._shapes.register(slots[has_shape], [region for region in regions if region.shape is not None])
        if not has_shape.all():
            boxes = [region for region in regions if region.shape is None]
            lo, hi = (np.array(ends, dtype=np.float64).T for ends in zip(*((b.lo, b.hi) for b in boxes), strict=True))
            self._boxes.register(slots[~has_shape], lo, hi)
        self._forms[slots] = np.where(has_shape, SHAPE, BOX)
        self._n += slots.size

    def deregister(self, slots: Int32s) -> None:
        """Remove queries: int32[m] slots."""
        if not slots.size:
            return
        forms = self._forms_of(slots)
        if (forms == NOTHING).any():
            raise ValueError(f"query slot {slots[forms == NOTHING][0]} is not registered: register it first.")
        self._boxes.deregister(slots[forms == BOX])
        if self._shapes is not None:
            self._shapes.deregister(slots[forms == SHAPE])
        self._forms[slots] = NOTHING
        self._n -= slots.size

    def _forms_of(self, slots: Int32s) -> Int8s:
        n_more = int(slots.max()) + 1 - self._forms.size
        if n_more > 0:
            self._forms = np.append(self._forms, np.zeros(max(n_more, self._forms.size), dtype=np.int8))
        return self._forms[slots]

    def moves(self, streams: Int32s, previous: Float64s, current: Float64s) -> Moves:
        """Return the queries that hold exactly one end of each move, as `BorderIndex.moves`."""
        assert isinstance(self._boxes, Layered), "a match index knows no moves"
        boxes = self._boxes.moves(streams, previous, current)
        return boxes if self._shapes is None else concat_moves([boxes, self._shapes.moves(streams, previous, current)])

    def stab(self, values: Float64s) -> Moves:
        """Return all queries that hold each of ``values``, as `MatchIndex.stab`."""
        boxes = self._boxes.stab(values)
        return boxes if self._shapes is None else concat_moves([boxes, self._shapes.stab(values)])

    def holds(self, slots: Int32s, values: Float64s) -> Bools:
        """Return whether the region of each slot holds the value beside it: bool[n].

        Parameters
        ----------
        slots : int32[n], registered; the same slot may come often.
        values : float64[d, n], finite; column i is tested against the region of ``slots[i]``.
        """
        if self._shapes is None:
            return self._boxes.holds(slots, values)
        held: Bools = np.empty(slots.size, dtype=np.bool_)
        has_shape = self._forms[slots] == SHAPE
        held[has_shape] = self._shapes.holds(slots[has_shape], values[:, has_shape])
        held[~has_shape] = self._boxes.holds(slots[~has_shape], values[:, ~has_shape])
        return held

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays of which the index consists."""
        return self._boxes.nbytes + self._forms.nbytes + (self._shapes.nbytes if self._shapes is not None else 0)

    def _check(self) -> None:
        """Assert every invariant; for tests."""
        self._boxes._check()
        if self._shapes is not None:
            self._shapes._check()
        assert self._n == np.count_nonzero(self._forms)
