"""Every border structure by its name."""

from collections.abc import Callable, Mapping

from bmq.index.border.border_grid import ROOM, GridCells
from bmq.index.border.nd_bmq import CrossCheckedLists
from bmq.index.border.region_segments import RegionSegments
from bmq.index.border.scan import Scan
from bmq.index.border.stab_difference import StabDifference
from bmq.index.layered import GROWTH, SMALLEST_LAYER, Layered
from bmq.index.packed import PackedQueries
from bmq.index.structure import BorderStructure
from bmq.records import IndexKind

STRUCTURES: Mapping[IndexKind, Callable[[PackedQueries], BorderStructure]] = {
    IndexKind.REGION_SEGMENTS: RegionSegments,
    IndexKind.BORDER_GRID: GridCells,
    IndexKind.ND_BMQ: CrossCheckedLists,
    IndexKind.STAB_DIFFERENCE: StabDifference,
    IndexKind.SCAN: Scan,
}


class OneKind(Layered):
    """The `BorderIndex` whose layers all have the structure of that name; parameters as for `Layers`."""

    def __init__(
        self, n_dims: int, kind: IndexKind, *, growth: int = GROWTH, smallest_layer: int = SMALLEST_LAYER
    ) -> None:
        room = ROOM if kind is IndexKind.BORDER_GRID else 0.0
        super().__init__(n_dims, growth=growth, smallest_layer=smallest_layer, room=room)
        self._kind = kind

    def _build(self, table: PackedQueries) -> BorderStructure:
        return STRUCTURES[self._kind](table)
