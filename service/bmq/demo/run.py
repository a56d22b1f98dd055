"""Runs the demo: Kafka, the service, generated streams, standing queries, and a live view."""

import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from bmq.broker.broker import Broker
from bmq.broker.ports import free_ports
from bmq.client import Client
from bmq.client.messages import Event, JoinEvent
from bmq.demo.child import ServiceProcess, running_service
from bmq.demo.demo_queries import Definition, stock_queries, vehicle_queries
from bmq.demo.feeder import Feeder
from bmq.demo.figures import Figures, scrape
from bmq.demo.generated_streams import Stocks, Vehicles, World
from bmq.demo.view import SHOWN_CROSSINGS, describe, make_view
from bmq.errors import ServiceError

REPLY_LIMIT_SECONDS = 120.0  # for all queries; the first batch may have to compile the kernels

# The numbers on the board cover the last seconds; with a shorter window they would jump with every batch.
WINDOW_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Scene:
    """The contents of a demo."""

    title: str
    world: World
    queries: Mapping[str, Definition]


def stocks_scene(seed: int) -> Scene:
    """Return prices of 2,000 symbols, price bands and alerts."""
    stocks = Stocks(seed=seed)
    return Scene("Stocks: prices cross bands", stocks, stock_queries(stocks))


def vehicles_scene(seed: int) -> Scene:
    """Return vehicles on a street grid, garages and shops."""
    return Scene("Vehicles: who enters and leaves garages and shops", Vehicles(seed=seed), vehicle_queries(seed))


def run(scene: Scene, rate: float, seconds: float | None) -> None:
    """Run the demo and print a summary at its end.

    1. Start Kafka and the service, with all their data in a temporary folder.
    2. Start to read events, register the queries, and start to publish readings.
    3. Show the state until the time is over or Ctrl-C.
    4. Stop everything in the reverse order, also after a failure.

    Parameters
    ----------
    rate : readings a second.
    seconds : how long readings are published; None: until Ctrl-C.
    """
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bmq-demo-")))  # 1
        print("Starting Kafka ...", flush=True)
        servers = stack.enter_context(Broker(folder / "kafka", progress=print)).bootstrap_servers
        print("Starting the service; Spark takes 10 to 20 seconds ...", flush=True)
        (metrics_port,) = free_ports(1)
        service = stack.enter_context(running_service(folder, scene.world, servers, metrics_port))
        client = stack.enter_context(Client(servers))
        latest = _watch(client.events())  # 2
        print(f"Registering {len(scene.queries)} queries ...", flush=True)
        _register(client, scene.queries)
        feeder = Feeder({"bootstrap.servers": servers}, scene.world, rate)
        feeder.start()
        stack.callback(feeder.stop)
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
    first = scrape(metrics_port) or Figures()
    seen = deque([(started, first)])
    try:
        with make_view(scene.title) as view:
            while seconds is None or time.monotonic() - started < seconds:
                time.sleep(view.refresh_seconds)
                service.check()
                figures = scrape(metrics_port)
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
