"""Runs the demo: Kafka, the service, generated streams, standing queries, and a live view."""

import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from bmq.broker.broker import Broker
from bmq.broker.ports import free_ports
from bmq.client import Client
from bmq.client.messages import Event, JoinEvent
from bmq.config import load_config
from bmq.demo.board import SHOWN_CROSSINGS, describe, make_view
from bmq.demo.child import ServiceProcess, running_service, write_config
from bmq.demo.demo_queries import Definition, stock_queries, vehicle_queries
from bmq.demo.feeder import Feeder
from bmq.demo.flights import Flights, flight_queries
from bmq.demo.generated_streams import Stocks, Vehicles, World
from bmq.errors import ServiceError
from bmq.view.figures import Figures, MetricsPlace, scrape
from bmq.view.live_page import PageOptions, live_page
from bmq.view.open_browser import open_browser

REPLY_LIMIT_SECONDS = 120.0  # for all queries; the first batch may have to compile the kernels

# The numbers on the board cover the last seconds; with a shorter window they would jump with every batch.
WINDOW_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Scene:
    """The contents of a demo."""

    title: str
    worlds: Sequence[World]
    queries: Mapping[str, Definition]

    def shares(self, rate: float) -> list[float]:
        """Return the readings a second of each world, so that all streams have equally many."""
        total = sum(len(world.ids) for world in self.worlds)
        return [rate * len(world.ids) / total for world in self.worlds]


def stocks_scene(seed: int) -> Scene:
    """Return prices of 2,000 symbols, price bands and alerts."""
    stocks = Stocks(seed=seed)
    return Scene("Stocks: prices cross bands", [stocks], stock_queries(stocks))


def vehicles_scene(seed: int) -> Scene:
    """Return vehicles on a street grid, garages and shops."""
    return Scene("Vehicles: who enters and leaves garages and shops", [Vehicles(seed=seed)], vehicle_queries(seed))


def flights_scene(seed: int) -> Scene:
    """Return planes that fly between cities, the areas around these, and some large ones."""
    return Scene("Flights: planes cross areas, 60 times faster than real ones", [Flights(seed=seed)], flight_queries())


def whole_scene(seed: int) -> Scene:
    """Return a smaller one of each: planes, vehicles and stocks."""
    flights, vehicles, stocks = Flights(seed=seed), Vehicles(1_500, seed), Stocks(300, seed)
    queries = flight_queries() | vehicle_queries(seed) | stock_queries(stocks)
    return Scene("Flights, vehicles and stocks", [flights, vehicles, stocks], queries)


SCENES = {"flights": flights_scene, "vehicles": vehicles_scene, "stocks": stocks_scene, "all": whole_scene}


def run(scene: Scene, rate: float, seconds: float | None, page: PageOptions | None, *, opens: bool) -> None:
    """Run the demo and print a summary at its end.

    1. Start Kafka and the service, with all their data in a temporary folder.
    2. Start to read events, register the queries, and start to publish readings and to serve the page.
    3. Show the state until the time is over or Ctrl-C.
    4. Stop everything in the reverse order, also after a failure.

    Parameters
    ----------
    rate : readings a second.
    seconds : how long readings are published; None: until Ctrl-C.
    page : how the page is served; None: without a page.
    opens : whether a browser shows the page.
    """
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bmq-demo-")))  # 1
        print("Starting Kafka ...", flush=True)
        servers = stack.enter_context(Broker(folder / "kafka", progress=print)).bootstrap_servers
        print("Starting the service; Spark takes 10 to 20 seconds ...", flush=True)
        (metrics_port,) = free_ports(1)
        config = write_config(folder, scene.worlds, servers, metrics_port)
        service = stack.enter_context(running_service(config, metrics_port))
        client = stack.enter_context(Client(servers))
        latest = _watch(client.events())  # 2
        print(f"Registering {len(scene.queries)} queries ...", flush=True)
        _register(client, scene.queries)
        for world, share in zip(scene.worlds, scene.shares(rate), strict=True):
            feeder = Feeder({"bootstrap.servers": servers}, world, share)
            feeder.start()
            stack.callback(feeder.stop)
        if page is not None:
            place = MetricsPlace(metrics_port)
            address = stack.enter_context(live_page(load_config(config), servers, page, place))
            print(f"The page is at {address}", flush=True)
            if opens:
                open_browser(address)
        _show(scene, service, metrics_port, latest, seconds)  # 3


def _register(client: Client, queries: Mapping[str, Definition]) -> None:
    replies = client.put_many(queries, REPLY_LIMIT_SECONDS)
    refused = [reply for reply in replies.values() if reply.status == "rejected"]
    if refused:
        raise ServiceError(f"{len(refused)} queries of the demo were rejected; report this: {refused[0].error}")


def _watch(events: Iterator[Event | JoinEvent]) -> deque[str]:
    """Return the sentences of the latest crossings; a thread keeps them up to date."""
    latest: deque[str] = deque(maxlen=SHOWN_CROSSINGS)

    def keep() -> None:
        for event in events:
            latest.extend(event.sentences())

    threading.Thread(target=keep, name="events", daemon=True).start()
    return latest


def _show(scene: Scene, service: ServiceProcess, metrics_port: int, latest: deque[str], seconds: float | None) -> None:
    """Show the state repeatedly; at the end, print the totals in one line."""
    started = time.monotonic()
    first = scrape(MetricsPlace(metrics_port)) or Figures()
    seen = deque([(started, first)])
    try:
        with make_view(scene.title) as view:
            while seconds is None or time.monotonic() - started < seconds:
                time.sleep(view.refresh_seconds)
                service.check()
                figures = scrape(MetricsPlace(metrics_port))
                if figures is None:
                    continue
                now = time.monotonic()
                seen.append((now, figures))
                while now - seen[1][0] >= WINDOW_SECONDS:
                    seen.popleft()
                then, earlier = seen[0]
                view.show(now - started, figures.since(earlier), now - then, list(latest))
    except KeyboardInterrupt:
        pass
    last_time, last = seen[-1]
    span = max(last_time - started, 1e-9)
    total = last.since(first)
    print(f"{total.readings:,.0f} readings and {total.events:,.0f} events in {span:.0f} s:", end=" ")
    print(", ".join(f"{name} {text}" for name, text in describe(total, span)))
