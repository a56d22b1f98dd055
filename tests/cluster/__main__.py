"""`python -m tests.cluster`: a master, workers, a Kafka and the service on this machine, until Ctrl-C.

    python -m tests.cluster --workers 3 --config config/local.toml

Logs, Kafka's data and the checkpoint are in a folder, and the next start goes on from there.
"""

import argparse
import shutil
import signal
import sys
import threading
from pathlib import Path
from types import FrameType
from urllib.request import urlopen

from bmq.broker.broker import Broker
from bmq.broker.ports import HOST, free_ports
from bmq.config import load_config
from bmq.errors import ServiceError
from bmq.job.kernel_archive import write_archive
from tests.cluster.standalone import Cluster
from tests.cluster.submitted import Archives, SubmittedService
from tests.conformance.service import ServiceFailed

FOLDER = Path("var/cluster")
LOOK_SECONDS = 0.5  # between two looks at the service


def main() -> int:
    """Run all of it; return the exit code: 0 after Ctrl-C or SIGTERM, 1 if something failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.cluster", description="A cluster on this machine.")
    parser.add_argument("--workers", type=int, default=2, help="number of workers with one core each (2)")
    parser.add_argument("--config", type=Path, default=Path("config/local.toml"), help="configuration of the service")
    parser.add_argument("--folder", type=Path, default=FOLDER, help=f"folder of logs and data ({FOLDER})")
    options = parser.parse_args()
    asked = threading.Event()
    _set_on_signal(asked)
    folder = options.folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    config = folder / "bmq.toml"
    if options.workers < 1:
        parser.error("--workers must be at least 1")
    try:
        shutil.copyfile(options.config, config)
        load_config(config)
        (metrics_port,) = free_ports(1)
        kernels = folder / "bmq-kernels.tar.gz"
        print("Loading the kernels. If they are not compiled yet, that takes some minutes.", flush=True)
        write_archive(kernels)
        with Broker(folder / "kafka") as broker, Cluster(folder / "spark", options.workers) as cluster:
            print(f"Kafka         {broker.bootstrap_servers}")
            print(f"master        {cluster.page} ({cluster.url})")
            for page in cluster.worker_pages():
                print(f"worker        {page}")
            environment = {
                "BMQ_KAFKA__BOOTSTRAP_SERVERS": broker.bootstrap_servers,
                "BMQ_JOB__CHECKPOINT": str(folder / "checkpoint"),
                "BMQ_METRICS__PORT": str(metrics_port),
            }
            print(f"service       http://{HOST}:{metrics_port}/metrics and /health, log {folder / 'service.log'}")
            service = SubmittedService(config, cluster.url, Archives(kernels), environment)
            try:
                if _watch(service, metrics_port, broker.bootstrap_servers, asked):
                    print("Stopping: the service ends its batch.", flush=True)
                    service.stop()
            finally:
                service.kill()
    except (ServiceError, ServiceFailed, AssertionError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    print("Stopped.")
    return 0


def _watch(service: SubmittedService, metrics_port: int, servers: str, asked: threading.Event) -> bool:
    """Wait for a signal; return whether the service ran when it came."""
    is_ready = False
    while not asked.wait(LOOK_SECONDS):
        if not service.runs():
            raise service.failed(f"the service ended by itself with exit code {service.exit_code}")
        if not is_ready and _is_ready(metrics_port):
            is_ready = True
            print(f"Running. Put a query: bmq query put ID FILE --bootstrap {servers}. Ctrl-C ends all.", flush=True)
    return is_ready


def _is_ready(port: int) -> bool:
    try:
        with urlopen(f"http://{HOST}:{port}/health/ready", timeout=5):
            return True
    except OSError:
        return False


def _set_on_signal(asked: threading.Event) -> None:
    def note(number: int, frame: FrameType | None) -> None:
        asked.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, note)


if __name__ == "__main__":
    sys.exit(main())
