"""Free ports of this machine. Knows sockets and nothing else."""

import socket

from bmq.errors import SetupError

HOST = "127.0.0.1"


def require_free(port: int) -> None:
    """Return if a server can listen on ``port`` now.

    Raises
    ------
    SetupError
        The port is in use, or this user must not use it (below 1024).
    """
    with socket.socket() as probe:
        # As in Java: a port on which an old connection is only in TIME_WAIT counts as free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            raise SetupError(
                f"port {port} of {HOST} cannot be used ({error.strerror}). "
                "Stop what listens there, or choose another port."
            ) from error


def is_free(port: int) -> bool:
    """Return whether a server can listen on ``port`` now."""
    try:
        require_free(port)
    except SetupError:
        return False
    return True


def free_ports(count: int) -> list[int]:
    """Return ``count`` different ports that are free now; another program may use one of them at any time."""
    probes = [socket.create_server((HOST, 0)) for _ in range(count)]
    ports = [int(probe.getsockname()[1]) for probe in probes]
    for probe in probes:
        probe.close()
    return ports
