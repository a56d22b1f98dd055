"""The puts of a snapshot, in pages that the state store can take."""

from collections.abc import Iterator, Sequence

from bmq.records import JoinQuery, Put, Query, Region, Where

# Spark copies a value several times on its way to the state store. A shape or a list of streams may have a megabyte.
PAGE_BYTES = 4_000_000
_PLAIN_BYTES = 250  # of a query without the parts below


def put_pages(puts: Sequence[Put[Query]]) -> Iterator[tuple[Put[Query], ...]]:
    """Yield the puts in their order, in pages of about PAGE_BYTES at most. O(puts), and the parts of each."""
    page: list[Put[Query]] = []
    n_bytes = 0
    for put in puts:
        size = query_bytes(put.query)
        if page and n_bytes + size > PAGE_BYTES:
            yield tuple(page)
            page, n_bytes = [], 0
        page.append(put)
        n_bytes += size
    if page:
        yield tuple(page)


def query_bytes(query: Query) -> int:
    """Return about how many bytes a query takes in a page: never much less than it does."""
    n_bytes = _PLAIN_BYTES + len(query.query_id) + 4 * len(query.tags)  # a character has at most four bytes
    if isinstance(query, JoinQuery):
        return n_bytes + _join_bytes(query)
    regions = (query.region, query.exit_region, *query.alternatives)
    n_bytes += sum(_region_bytes(region) for region in regions if region is not None)
    return n_bytes + _where_bytes(query.where) + sum(4 * len(stream) + 5 for stream in query.streams or ())


def _join_bytes(query: JoinQuery) -> int:
    wheres = sum(_where_bytes(side.where) for side in (query.left, query.right))
    return wheres + sum(
        _region_bytes(one.left) + _region_bytes(one.right) + 40 * len(one.bands) for one in query.alternatives
    )


def _region_bytes(region: Region) -> int:
    shape = region.shape
    of_shape = 0 if shape is None else len(shape.vertices) + 5 * len(shape.ring_starts)
    return 20 * (len(region.lo) + 1) + of_shape


def _where_bytes(where: Where) -> int:
    return sum(4 * len(name) + sum(4 * len(value) + 5 for value in values) for name, values in where)
