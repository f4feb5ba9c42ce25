"""The socket of the service and of the studio, and whether only this machine can reach it."""

import contextlib
import ipaddress
import os
import socket

from labelspace.errors import ConfigError


def is_own_machine(host: str) -> bool:
    """Return whether only this machine can reach the host.

    Example:
        >>> is_own_machine("127.0.0.1"), is_own_machine("localhost"), is_own_machine("0.0.0.0")
        (True, True, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def listen(host: str, port: int) -> socket.socket:
    """Return a socket on the host's port; port 0 takes a free one.

    Raises:
        ConfigError: the port is taken, or the host is not of this machine.
    """
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        # asyncio sends small answers at once (TCP_NODELAY) only where the protocol is named; else each waits 40 ms.
        with contextlib.ExitStack() as stack:
            found = stack.enter_context(socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP))
            if os.name == "posix":  # on Windows it would let two services have one port
                found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            found.bind((host, port))
            found.listen()  # at once: another service on this port fails now, and clients wait for the models
            stack.pop_all()
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", "no name of a host")
        raise ConfigError(f"cannot serve at {host}:{port} ({why}); choose another --port or --host.") from error
    return found
