"""The service as docs/operations.md submits it to a cluster: `spark-submit … deploy/main.py --config FILE`."""

import os
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from bmq.broker.ports import HOST
from tests.cluster.processes import descendants
from tests.cluster.standalone import SPARK_HOME, spark_environment
from tests.conformance.service import Service

# Where Spark unpacks the archives, in the folder of each executor.
CACHE = "bmq-cache"
PACKAGES = "bmq-packages"
MAIN = Path(__file__).parents[2] / "deploy" / "main.py"


@dataclass(frozen=True)
class Archives:
    """What `bmq package` wrote.

    Attributes
    ----------
    packages : None: the executors have the packages of this process.
    """

    kernels: Path
    packages: Path | None = None

    def names(self) -> str:
        """Return what `--archives` takes."""
        return ",".join([f"{self.kernels}#{CACHE}", *([f"{self.packages}#{PACKAGES}"] if self.packages else [])])

    def settings(self) -> dict[str, str]:
        """Return the settings of Spark with which executors use them."""
        found = {"spark.executorEnv.BMQ_CACHE_DIR": CACHE}
        if self.packages is None:
            return found | {"spark.executorEnv.PYTHONPATH": spark_environment()["PYTHONPATH"]}
        return found | {
            "spark.executorEnv.PYTHONPATH": PACKAGES,
            # The interpreter behind the virtual environment, which has none of its packages.
            "spark.pyspark.python": os.path.realpath(sys.executable),
            "spark.pyspark.driver.python": sys.executable,
        }


SETTINGS = {
    "spark.driver.host": HOST,
    "spark.driver.memory": "1g",
    "spark.executor.memory": "1g",
    "spark.executor.cores": "1",
}


def submit_command(master: str, config: Path, archives: Archives) -> list[str]:
    """Return the command that submits the service."""
    settings = SETTINGS | archives.settings()
    words = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    submit = [str(SPARK_HOME / "bin" / "spark-submit"), "--master", master, "--archives", archives.names()]
    return [*submit, *words, str(MAIN), "--config", str(config)]


class SubmittedService(Service):
    """The service on a cluster; the process is the driver.

    Parameters
    ----------
    archives : for its executors.
    environment : variables of the driver, over those of this process.
    """

    def __init__(
        self, config: Path, master: str, archives: Archives, environment: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        self._master = master
        self._archives = archives
        super().__init__(config, {**spark_environment(), **environment})

    def stop(self) -> None:
        """End the service by SIGTERM to the driver's Python process; it must finish its batch and exit with 0.

        SIGTERM to `spark-submit` would end the JVM under the batch.
        """
        (driver,) = [process.pid for process in descendants(self.pid) if str(MAIN) in process.command]
        os.kill(driver, signal.SIGTERM)
        self.must_end()

    def _command(self) -> list[str]:
        return submit_command(self._master, self._config, self._archives)
