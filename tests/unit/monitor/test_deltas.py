"""`Monitor.take_delta`: what one batch of commands leaves for the state."""

import json
from typing import Any

from bmq.monitor.monitor import Monitor
from bmq.records import Feed, Installation
from bmq.wire.control import parse_command

FEEDS = {name: Feed(name, name, "id", ("x",), event_time="ts", join=True) for name in ("left", "right")}
BORDER = {"kind": "border", "feed": "left", "region": {"box": {"x": [0, 1]}}}
WINDOW_JOIN = {
    "kind": "window_join",
    "left": {"feed": "left", "window": "10s"},
    "right": {"feed": "right", "window": "10s"},
    "any": [{"band": [["left.x", "right.x", -1, 1]]}],
}


def test_window_joins_are_in_the_order_in_which_they_became_joins() -> None:
    monitor = Monitor(Installation(FEEDS))
    puts: list[tuple[str, dict[str, Any]]] = [("a", BORDER), ("b", WINDOW_JOIN), ("a", WINDOW_JOIN)]
    commands = [
        parse_command(query_id.encode(), json.dumps(definition).encode(), offset, Installation(FEEDS))
        for offset, (query_id, definition) in enumerate(puts)
    ]

    monitor.apply(commands)

    assert list(monitor.take_delta().since) == ["b", "a"]
