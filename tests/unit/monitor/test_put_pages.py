"""The pages of a snapshot that hold queries: bounded in bytes."""

import json

from bmq.monitor.put_pages import PAGE_BYTES, put_pages, query_bytes
from bmq.records import Delta, Feed, Installation, Put, Query, Region, RegionQuery, Shape, ShapeKind
from bmq.wire.control import parse_command
from bmq.wire.state_bytes import pack_delta

FEEDS = {
    "plane": Feed("plane", "plane", "id", ("x", "y"), attributes=("group",), join=True),
    "globe": Feed("globe", "globe", "id", ("lon", "lat"), attributes=("group",), lonlat=True, join=True),
}


def put(number: int, n_vertices: int) -> Put[Query]:
    shape = Shape(ShapeKind.POLYGON, bytes(16 * n_vertices), (0, n_vertices))
    return Put(number, RegionQuery(f"q{number}", number + 1, "plane", Region((0.0, 0.0), (1.0, 1.0), shape)))


def test_pages_have_every_put_once_and_in_order() -> None:
    puts = [put(number, 4) for number in range(20_000)]

    pages = list(put_pages(puts))

    assert len(pages) == 2
    assert [one for page in pages for one in page] == puts


def test_a_page_of_large_shapes_is_no_larger_than_the_limit() -> None:
    pages = list(put_pages([put(number, 10_000) for number in range(60)]))

    assert len(pages) == 3
    assert all(len(pack_delta(Delta(commands=page))) < PAGE_BYTES for page in pages)


def test_one_query_beyond_the_limit_has_a_page_of_its_own() -> None:
    puts = [put(0, 4), put(1, PAGE_BYTES // 16 + 1), put(2, 4)]

    assert [len(page) for page in put_pages(puts)] == [1, 1, 1]


def test_the_bytes_of_a_query_of_any_kind_are_not_much_less_than_it_takes() -> None:
    streams = [f"stream-\u00e9-{n}" for n in range(500)]
    where = {"group": [f"value {n}" for n in range(300)]}
    box = {"box": {"x": [0, 1], "y": [0, 1]}}
    circle = {"circle": {"center": [10, 50], "radius": 500}}
    sides = {"left": {"feed": "plane", "window": 5}, "right": {"feed": "globe", "window": "1s"}}
    band = ["left.x", "right.lon", 0, 1, "[]"]
    definitions: list[dict[str, object]] = [
        {"kind": "border", "feed": "plane", "region": box, "streams": streams, "where": where},
        {"kind": "border", "feed": "globe", "region": circle, "tags": {"name": "\u00e9" * 1_000}},
        {"kind": "border", "feed": "plane", "region": box, "exit_region": {"box": {"x": [-1, 2], "y": [-1, 2]}}},
        {"kind": "select", "feed": "plane", "any": [{"x": [n, n + 1], "group": [0, n + 1]} for n in range(50)]},
        {"kind": "window_join", **sides, "any": [
            {"left.x": [n, n + 1], "right.lat": [0, n + 1], "band": [band]} for n in range(40)
        ]},
        {"kind": "band_join", "left": "plane", "right": "globe", "on": {"left": "x", "right": "lat"}, "band": [0, 5]},
    ]  # fmt: skip
    for definition in definitions:
        command = parse_command(b"q", json.dumps(definition).encode(), 0, Installation(FEEDS))
        assert isinstance(command, Put), command
        packed = len(pack_delta(Delta(commands=(command,))))
        assert query_bytes(command.query) >= 0.9 * packed, (definition["kind"], packed)
