"""Border indexes that have one structure for all their layers, whatever the queries and the movement are.

The service makes such an index by `OneKind`, from the name in its configuration. The classes here give each structure
that the papers' figures and the tests compare a name, and the border grid a room of any size.
"""

from bmq.index.border.border_grid import ROOM, GridCells
from bmq.index.border.structures import OneKind
from bmq.index.layered import GROWTH, SMALLEST_LAYER, Layered
from bmq.index.packed import PackedQueries
from bmq.records import IndexKind


class RegionSegmentList(OneKind):
    """The `BorderIndex` of one dimension: the BMQ papers' RS list, without the RS nodes."""

    def __init__(self, *, growth: int = GROWTH, smallest_layer: int = SMALLEST_LAYER) -> None:
        super().__init__(1, IndexKind.REGION_SEGMENTS, growth=growth, smallest_layer=smallest_layer)


class NdBmq(OneKind):
    """The `BorderIndex` of any number of dimensions, by the BMQ papers."""

    def __init__(self, n_dims: int, *, growth: int = GROWTH, smallest_layer: int = SMALLEST_LAYER) -> None:
        super().__init__(n_dims, IndexKind.ND_BMQ, growth=growth, smallest_layer=smallest_layer)


class BorderGrid(Layered):
    """The `BorderIndex` of two and more dimensions that has a border grid; parameters as for `Layers`."""

    def __init__(
        self, n_dims: int = 2, *, growth: int = GROWTH, smallest_layer: int = SMALLEST_LAYER, room: float = ROOM
    ) -> None:
        super().__init__(n_dims, growth=growth, smallest_layer=smallest_layer, room=room)

    def _build(self, table: PackedQueries) -> GridCells:
        return GridCells(table)
