"""Ports of this machine that are free. Knows sockets and nothing else."""

import socket

from bmq.errors import SetupError

HOST = "127.0.0.1"


def require_free(port: int) -> None:
    """Return if ``port`` can be listened on now.

    Raises
    ------
    SetupError
        It is taken, or not ours to take (below 1024).
    """
    with socket.socket() as probe:
        # As Java does: a port that only waits for late packets of an old connection is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            raise SetupError(
                f"port {port} of {HOST} cannot be used ({error.strerror}). "
                "Stop what listens there, or choose another port."
            ) from error


def free_ports(count: int) -> list[int]:
    """Return ``count`` different ports that nobody listens on now; another program may take one any time."""
    probes = [socket.create_server((HOST, 0)) for _ in range(count)]
    ports = [int(probe.getsockname()[1]) for probe in probes]
    for probe in probes:
        probe.close()
    return ports
