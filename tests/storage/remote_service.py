"""The service with a checkpoint on a server: Spark's settings as a user writes them, and the look at its batches."""

import time
from pathlib import Path

from tests.conformance.service import Service
from tests.storage.servers import Server

# A look costs the server some requests; the service needs them as well.
LOOK_SECONDS = 0.3

# Spark uploads a snapshot of a state after ten batches and once a minute. A test has not so many, nor so much time.
SOON = {
    "spark.sql.streaming.stateStore.minDeltasForSnapshot": "2",
    "spark.sql.streaming.stateStore.maintenanceInterval": "3s",
}


def write_defaults(folder: Path, settings: dict[str, str]) -> None:
    """Write spark-defaults.conf into a folder for SPARK_CONF_DIR."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [f"{name} {value}\n" for name, value in settings.items()]
    (folder / "spark-defaults.conf").write_text("".join(lines), encoding="utf-8")


class RemoteService(Service):
    """`bmq serve` as a child, with its checkpoint on a server.

    Parameters
    ----------
    name : of the checkpoint there.
    """

    def __init__(self, config: Path, server: Server, name: str) -> None:
        self._server = server
        self._name = name
        self._next_look = 0.0
        spark_conf = config.with_name("spark-conf")
        write_defaults(spark_conf, server.settings | SOON)
        super().__init__(config, {"SPARK_CONF_DIR": str(spark_conf)})

    def batch_under_way(self) -> int | None:
        """Return the number of the batch that is planned and not committed; None: there is none."""
        planned, committed = (max(self.batches_in(folder), default=-1) for folder in ("offsets", "commits"))
        return planned if planned > committed else None

    def batches_in(self, folder: str) -> list[int]:
        """Return the numbers of the batches that have a file in a folder of the checkpoint, in no order."""
        return [int(name) for name in self._server.names(f"{self._name}/{folder}") if name.isdecimal()]

    def offsets_text(self, batch: int) -> str:
        """Return the content of a batch's file in `offsets`."""
        return self._server.read(f"{self._name}/offsets/{batch}").decode()

    def _committed_offsets(self) -> dict[str, int]:
        if time.monotonic() < self._next_look:
            return self._reached
        reached = super()._committed_offsets()
        self._next_look = time.monotonic() + LOOK_SECONDS
        return reached
