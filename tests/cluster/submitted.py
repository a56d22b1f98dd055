"""The service as docs/operations.md submits it to a cluster: `spark-submit … deploy/main.py --config FILE`."""

import os
import signal
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from bmq.broker.ports import HOST
from tests.cluster.processes import descendants
from tests.cluster.standalone import SPARK_HOME, spark_environment
from tests.conformance.service import Service

CACHE = "bmq-cache"  # where Spark unpacks the archive, in the folder of each executor
MAIN = Path(__file__).parents[2] / "deploy" / "main.py"

SETTINGS = {
    "spark.driver.host": HOST,
    "spark.driver.memory": "1g",
    "spark.executor.memory": "1g",
    "spark.executor.cores": "1",
    # Only because the package of a checkout may not be installed.
    "spark.executorEnv.PYTHONPATH": spark_environment()["PYTHONPATH"],
}


def submit_command(master: str, config: Path, kernels: Path) -> list[str]:
    """Return the command that submits the service; ``kernels`` is the archive of `bmq package`."""
    settings = {**SETTINGS, "spark.executorEnv.BMQ_CACHE_DIR": CACHE}
    words = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    submit = [str(SPARK_HOME / "bin" / "spark-submit"), "--master", master, "--archives", f"{kernels}#{CACHE}"]
    return [*submit, *words, str(MAIN), "--config", str(config)]


class SubmittedService(Service):
    """The service on a cluster; the process is the driver.

    Parameters
    ----------
    kernels : the archive of `bmq package`.
    environment : variables of the driver, over those of this process.
    """

    def __init__(
        self, config: Path, master: str, kernels: Path, environment: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        self._master = master
        self._kernels = kernels
        super().__init__(config, {**spark_environment(), **environment})

    def stop(self) -> None:
        """End the service by SIGTERM to the driver's Python process; it must finish its batch and exit with 0.

        SIGTERM to `spark-submit` would end the JVM under the batch.
        """
        (driver,) = [process.pid for process in descendants(self.pid) if str(MAIN) in process.command]
        os.kill(driver, signal.SIGTERM)
        self.must_end()

    def _command(self) -> list[str]:
        return submit_command(self._master, self._config, self._kernels)
