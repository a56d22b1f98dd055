"""The adapter of Tile38: starts a server of its own for each scenario, and reads what its fences report.

Tile38's events have no reason, and its errors no code. docs/conformance.md has the result.
"""

import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from bmq.broker.ports import HOST, free_ports, is_free
from bmq.conformance.adapter import SystemFailed
from bmq.conformance.event_text import Lack
from bmq.conformance.resp import Connection, Refused
from bmq.conformance.scenario import Commands, Json, Publish, Scenario, all_feeds
from bmq.conformance.tile38_commands import Inexpressible, fence_words, set_words
from bmq.errors import ConfigError

PROGRAM = "tile38-server"
START_SECONDS = 30.0  # an idle machine takes a tenth of a second
REPLY_SECONDS = 30.0
STOP_SECONDS = 30.0
PAUSE_SECONDS = 0.02
MARK = "bmq-conformance-mark"  # the channel of the message behind all events

# Of refusals that Tile38 could give as well: it sees the numbers of a region, and the name of a channel.
_ITS_REFUSALS = {"bad_region", "unknown_query"}
_SIGNS = {"enter": "+", "exit": "-"}


class Tile38Adapter:
    """A server of Tile38, over its own protocol.

    Parameters
    ----------
    server : the program `tile38-server`. None: the one on the path.
    """

    lacks = frozenset(Lack)

    def __init__(self, server: str | None) -> None:
        program = shutil.which(server or PROGRAM)
        if program is None:
            raise ConfigError(
                f"The program {server or PROGRAM} is not there, or is not executable. Build it from the sources of "
                "Tile38 with Go (docs/conformance.md), and name it with --server PATH."
            )
        self._program = program
        self._process: subprocess.Popen[bytes] | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._connections: list[Connection] = []
        self._feeds: Mapping[str, Json] = {}
        self._kinds: dict[str, str] = {}

    def cannot(self, scenario: Scenario) -> str | None:
        """Return why no commands of Tile38 say what a scenario says."""
        feeds = all_feeds([scenario])
        for name, options in feeds.items():
            if "max_lateness" in options:
                return f"max_lateness of feed {name}: Tile38 applies points as they arrive, and holds none back"
            if "stream_ttl" in options:
                return f"stream_ttl of feed {name}: SET … EX runs by the clock of the machine, and not by event time"
        try:
            for step in scenario.steps:
                if isinstance(step, Commands):
                    _try_commands(step, feeds)
                if isinstance(step, Publish):
                    for value in step.values:
                        set_words(step.feed, value, feeds[step.feed])
        except Inexpressible as error:
            return str(error)
        return None

    def start(self, feeds: Mapping[str, Json]) -> None:
        """Start a server in an empty folder."""
        self._feeds, self._kinds = feeds, {}
        self._folder = tempfile.TemporaryDirectory(prefix="bmq-tile38-")
        self._run()

    def put(self, query_id: str, definition: bytes) -> str:
        """Set the channel of a query. Tile38 answers 0 if the channel was the same before."""
        asked = json.loads(definition)
        try:
            changed = self._writer.command(*fence_words(query_id, asked, self._feeds))
        except Refused:
            return "rejected"
        self._kinds[query_id] = asked["kind"]
        return "accepted" if changed else "unchanged"

    def delete(self, query_id: str) -> str:
        """Delete the channel of a query. Tile38 answers 0 if there was none."""
        return "deleted" if self._writer.command("DELCHAN", query_id) else "rejected"

    def send(self, feed: str, values: Sequence[bytes]) -> list[str]:
        """Set the points of records, one after the other; count those that Tile38 refuses."""
        refused = []
        for value in values:
            try:
                self._writer.command(*set_words(feed, value, self._feeds[feed]))
            except Refused:
                refused.append("refused")
        return refused

    def events(self) -> list[Json]:
        """Return what the fences reported: everything before a mark that is published now."""
        self._writer.command("PUBLISH", MARK, "now")
        events: list[Json] = []
        while True:
            message = self._reader.receive()
            if not isinstance(message, list) or not isinstance(message[-1], str):
                raise SystemFailed(f"Tile38 sent {message!r} to a subscriber. Use the adapter with Tile38 1.37.")
            if message[-2] == MARK:
                return events
            events.append(self._event(json.loads(message[-1])))

    def restart(self, how: str) -> None:
        """End the server by SIGKILL or SIGTERM, and start it with its log."""
        self._end(how)
        self._run()

    def stop(self) -> None:
        """End the server and remove its folder."""
        self._end("kill")
        if self._folder is not None:
            self._folder.cleanup()

    def _event(self, reported: Json) -> Json:
        query_id = reported["hook"]
        event = {
            "kind": self._kinds[query_id],
            "query_id": query_id,
            "stream_id": reported["id"],
            "event_time": reported["fields"]["ts"],
        }
        return event | ({"sign": _SIGNS[reported["detect"]]} if reported["detect"] in _SIGNS else {})

    def _run(self) -> None:
        assert self._folder is not None
        (port,) = free_ports(1)
        options = ["-h", HOST, "-p", str(port), "-d", str(Path(self._folder.name, "data")), "-q"]
        self._process = subprocess.Popen(
            [self._program, *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self._wait_until_started(self._process, port)
        self._writer, self._reader = self._connect(port), self._connect(port)
        self._reader.command("PSUBSCRIBE", "*")

    def _wait_until_started(self, process: subprocess.Popen[bytes], port: int) -> None:
        deadline = time.monotonic() + START_SECONDS
        while is_free(port):
            if process.poll() is not None or time.monotonic() > deadline:
                raise SystemFailed(
                    f"{self._program} does not listen on port {port} of {HOST}, as tile38-server would within "
                    f"{START_SECONDS:.0f} s. Run it by hand and look."
                )
            time.sleep(PAUSE_SECONDS)

    def _connect(self, port: int) -> Connection:
        connection = Connection(HOST, port, REPLY_SECONDS)
        self._connections.append(connection)
        return connection

    def _end(self, how: str) -> None:
        """End the server and close the connections to it."""
        for connection in self._connections:
            connection.close()
        self._connections = []
        process, self._process = self._process, None
        if process is None:
            return
        if how == "stop":
            process.terminate()
        else:
            process.kill()
        process.wait(STOP_SECONDS)


def _try_commands(step: Commands, feeds: Mapping[str, Json]) -> None:
    """Raise `Inexpressible` if Tile38 has no commands for a step."""
    status, _, code = step.reply.partition(":")
    if status == "rejected" and code not in _ITS_REFUSALS:
        raise Inexpressible(
            f"{code}: Tile38 sees no definitions and no declared feeds, so it cannot refuse their faults"
        )
    for query_id, value in step.records:
        if value is not None:
            definition = json.loads(value)
            fence_words(query_id, definition, feeds)
            if status == "rejected" and definition["kind"] == "select":
                raise Inexpressible(f"{code}: an expression over fields is never refused for what it asks")
