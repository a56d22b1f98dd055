"""What the log leaves out: py4j's tracebacks of calls that found the JVM gone."""

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

pytestmark = pytest.mark.unit

CALL = """
import logging, sys
from py4j.java_gateway import GatewayParameters, JavaGateway
from py4j.protocol import Py4JError
from bmq.cli.log_lines import log_to_stderr
log_to_stderr()
try:
    JavaGateway(gateway_parameters=GatewayParameters(port=int(sys.argv[1]))).jvm.System.currentTimeMillis()
except Py4JError:
    logging.getLogger("bmq").error("the JVM is gone")
"""


@pytest.fixture
def port() -> Iterator[int]:
    """The port of a peer that takes a command and ends."""
    listener = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=_close_each, args=(listener,), daemon=True).start()
    yield listener.getsockname()[1]
    listener.close()


def _close_each(listener: socket.socket) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        connection.recv(1)
        connection.close()


@pytest.mark.parametrize("debug", ["", "1"])
def test_a_call_that_finds_the_jvm_gone_leaves_no_traceback(port: int, debug: str) -> None:
    command = [sys.executable, "-c", CALL, str(port)]
    environment = os.environ | {"BMQ_DEBUG": debug}

    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)

    assert run.stderr.count("the JVM is gone") == 1
    assert ("Traceback" in run.stderr) == bool(debug)
